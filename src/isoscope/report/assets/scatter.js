// Points in the plane: colour and shape by label, text under the pointer, arrow keys from point to point.
// Points are selected by a click, by a rectangle that is dragged, or by the space bar.
const SHAPES = [
  'M-3.1 0a3.1 3.1 0 1 0 6.2 0a3.1 3.1 0 1 0 -6.2 0Z', 'M-2.7 -2.7H2.7V2.7H-2.7Z', 'M0 -3.7L3.5 2.6H-3.5Z',
  'M0 -4L3.4 0L0 4L-3.4 0Z', 'M-1.2 -3.6H1.2V-1.2H3.6V1.2H1.2V3.6H-1.2V1.2H-3.6V-1.2H-1.2Z', 'M0 3.7L3.5 -2.6H-3.5Z',
  'M-3.4 -1.9L-1.9 -3.4L0 -1.5L1.9 -3.4L3.4 -1.9L1.5 0L3.4 1.9L1.9 3.4L0 1.5L-1.9 3.4L-3.4 1.9L-1.5 0Z', 'M-3.8 -1.4H3.8V1.4H-3.8Z', 'M-1.4 -3.8H1.4V3.8H-1.4Z',
  'M0 -3.9L1.1 -1.2L3.8 -1.2L1.6 .6L2.4 3.4L0 1.8L-2.4 3.4L-1.6 .6L-3.8 -1.2L-1.1 -1.2Z'];
const COLORS = 7; // the eighth, grey, is for what has no label or comes after all combinations

// Labels among the points, the most frequent first.
function ranked(points) {
  const counts = new Map();
  (points.labels ?? []).forEach((code) => counts.set(code, (counts.get(code) ?? 0) + 1));
  return [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || a - b);
}

// Neighbours in the ranking differ in colour and in shape; 7 and 10 have no divisor, so 70 labels differ in all.
function looks(place) {
  if (place === null) return { color: 'c0', shape: SHAPES[0] };
  if (place >= COLORS * SHAPES.length) return { color: 'c7', shape: SHAPES[0] };
  return { color: `c${place % COLORS}`, shape: SHAPES[place % SHAPES.length] };
}

function scatter(holder, points, { onPoint, onSelect }) {
  const names = points.label_names, size = 9;
  const codes = points.labels ?? null, order = ranked(points);
  const placeOf = new Map(order.map((code, place) => [code, place]));
  let picture = null, shownLabel = null, chosen = -1, screen = [], marks = [], svg = null, ring = null, names2 = ['', ''];
  let selected = new Set(), corner = null, frame = null;

  function describe(i) {
    const lines = [];
    if (points.texts) lines.push(points.texts[i]);
    if (codes) lines.push(`${names[codes[i]]}${points.silhouettes ? `, silhouette ${signed(points.silhouettes[i])}` : ''}`);
    lines.push(`row ${count(points.rows[i])}`);
    return lines;
  }

  function draw(width) {
    if (!picture) return;
    const height = Math.max(280, Math.min(400, width * 0.8));
    const box = { left: 8, right: width - 8, top: 8, bottom: height - 22 };
    svg = canvas(holder, width, height, `${count(points.n)} points in the plane. Arrow keys go from point to point.`);
    svg.setAttribute('tabindex', '0');
    svg.setAttribute('role', 'application');
    shape(svg, 'rect', { x: 0.5, y: 0.5, width: width - 1, height: height - 19, fill: 'none', class: 'axis', rx: 4 });
    shape(svg, 'text', { x: width / 2, y: height - 3, 'text-anchor': 'middle' }, names2[0]);
    const side = shape(svg, 'text', { x: 0, y: 0, transform: `translate(14 ${height / 2 - 8}) rotate(-90)`, 'text-anchor': 'middle' }, names2[1]);
    side.setAttribute('opacity', names2[1] ? 1 : 0);
    const [xs, ys] = picture;
    const span = (values) => { let low = Infinity, high = -Infinity; for (const v of values) { if (v < low) low = v; if (v > high) high = v; } return [low, high]; };
    const [x0, x1] = span(xs), [y0, y1] = span(ys);
    const unit = Math.max((x1 - x0) / (box.right - box.left - 3 * size), (y1 - y0) / (box.bottom - box.top - 2 * size)) || 1;
    const px = (box.left + box.right) / 2, py = (box.top + box.bottom) / 2;
    screen = Array.from(xs, (x, i) => [px + (x - (x0 + x1) / 2) / unit, py - (ys[i] - (y0 + y1) / 2) / unit]);
    const group = shape(svg, 'g');
    marks = screen.map(([x, y], i) => {
      const look = looks(codes ? placeOf.get(codes[i]) : null);
      return shape(group, 'path', { d: look.shape, class: `mark ${look.color}`, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
    });
    ring = paint(shape(svg, 'circle', { r: 7, fill: 'none', 'stroke-width': 2, visibility: 'hidden' }), { stroke: 'var(--ink)' });
    frame = shape(svg, 'rect', { class: 'frame', visibility: 'hidden' });
    emphasize();
    outline();
    if (chosen >= 0) mark(chosen);
    svg.addEventListener('pointerdown', (event) => { if (event.button === 0) corner = placed(svg, event); });
    svg.addEventListener('pointerup', release);
    svg.addEventListener('pointercancel', () => { corner = null; frame.setAttribute('visibility', 'hidden'); });
    svg.addEventListener('pointermove', (event) => {
      if (isDragged(event)) { untell(); return; }
      const i = nearest(...placed(svg, event));
      if (i < 0) { untell(); return; }
      mark(i);
      tell(event, describe(i));
    });
    svg.addEventListener('pointerleave', untell);
    svg.addEventListener('keydown', key);
    svg.addEventListener('focus', () => mark(chosen < 0 ? nearest(px, py, Infinity) : chosen));
  }

  // Whether a rectangle is being dragged; it is drawn then. A finger scrolls the page instead.
  function isDragged(event) {
    if (!corner || event.pointerType === 'touch') return false;
    const [x, y] = placed(svg, event), [a, b] = corner;
    if (Math.hypot(x - a, y - b) < 4) return false;
    if (!svg.hasPointerCapture(event.pointerId)) svg.setPointerCapture(event.pointerId);
    for (const [name, value] of Object.entries({ x: Math.min(a, x), y: Math.min(b, y), width: Math.abs(x - a), height: Math.abs(y - b), visibility: 'visible' })) frame.setAttribute(name, value);
    return true;
  }

  function release(event) {
    const [x, y] = placed(svg, event), from = corner, dragged = isDragged(event);
    corner = null;
    frame.setAttribute('visibility', 'hidden');
    if (!from) return;
    if (!dragged) { toggle(nearest(x, y)); return; }
    const inside = ([a, b]) => (a - from[0]) * (a - x) <= 0 && (b - from[1]) * (b - y) <= 0;
    const found = screen.map((place, i) => i).filter((i) => visible(i) && inside(screen[i]));
    choose(event.shiftKey ? [...selected, ...found] : found);
  }

  // A point more or less; beside all points, none.
  function toggle(i) {
    if (i < 0) { choose([]); return; }
    choose(selected.has(i) ? [...selected].filter((other) => other !== i) : [...selected, i]);
  }

  function choose(places, report = true) {
    selected = new Set(places);
    outline();
    onSelect([...selected].map((i) => points.rows[i]).sort((a, b) => a - b), report);
  }

  function outline() {
    marks.forEach((element, i) => element.classList.toggle('selected', selected.has(i)));
  }

  const visible = (i) => shownLabel === null || codes[i] === shownLabel;

  function emphasize() {
    const last = [];
    marks.forEach((element, i) => { element.classList.toggle('dim', !visible(i)); if (shownLabel !== null && visible(i)) last.push(element); });
    last.forEach((element) => element.parentNode.append(element));
  }

  function nearest(x, y, reach = 14) {
    let best = -1, least = reach * reach;
    screen.forEach(([a, b], i) => {
      const square = (a - x) ** 2 + (b - y) ** 2;
      if (square < least && visible(i)) { least = square; best = i; }
    });
    return best;
  }

  function mark(i) {
    if (i < 0) return;
    chosen = i;
    ring.setAttribute('cx', screen[i][0]);
    ring.setAttribute('cy', screen[i][1]);
    ring.setAttribute('visibility', 'visible');
    onPoint(describe(i));
  }

  function key(event) {
    if (event.key === 'Escape') choose([]);
    if (event.key === ' ') { event.preventDefault(); toggle(chosen); }
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    const [x, y] = screen[Math.max(0, chosen)];
    let best = -1, least = Infinity;
    screen.forEach(([a, b], i) => {
      const along = (a - x) * way[0] + (b - y) * way[1], across = Math.abs((a - x) * way[1] + (b - y) * way[0]);
      if (i === chosen || !visible(i) || along <= 0 || across > 2 * along) return;
      const cost = along + 2 * across;
      if (cost < least) { least = cost; best = i; }
    });
    mark(best);
  }

  const redraw = responsive(holder, draw);
  return {
    show(xs, ys, axisNames) { picture = [xs, ys]; names2 = axisNames; redraw(); },
    only(label) { shownLabel = label; emphasize(); },
    select(rows) { const wanted = new Set(rows); choose(points.rows.flatMap((row, i) => (wanted.has(row) ? [i] : [])), false); },
  };
}

function drawLegend(holder, points, onLabel) {
  if (!points.labels) return;
  let chosen = null;
  const order = ranked(points);
  const buttons = order.map((code, place) => {
    const button = put(holder, 'button', { type: 'button', 'aria-pressed': 'false' });
    const look = looks(place);
    const icon = shape(button, 'svg', { viewBox: '-5 -5 10 10', width: 11, height: 11, 'aria-hidden': 'true' });
    shape(icon, 'path', { d: look.shape, class: look.color });
    put(button, 'span', {}, points.label_names[code]);
    button.addEventListener('click', () => {
      chosen = chosen === code ? null : code;
      buttons.forEach(([other, element]) => element.setAttribute('aria-pressed', String(other === chosen)));
      onLabel(chosen);
    });
    return [code, button];
  });
}
