// Elements, scales, axes, and what appears under the pointer. Text is only ever set as text.
const at = (id) => document.getElementById(id);

function put(parent, name, attributes = {}, text = null) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  parent.append(element);
  return element;
}

function shape(parent, name, attributes = {}, text = null) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  parent.append(element);
  return element;
}

const linear = (low, high, from, to) => Object.assign((v) => from + ((v - low) / (high - low || 1)) * (to - from), {
  ticks: (n) => niceTicks(low, high, n), low, high, back: (p) => low + ((p - from) / (to - from)) * (high - low) });

function logarithmic(low, high, from, to) {
  const inner = linear(Math.log10(low), Math.log10(high), from, to);
  return Object.assign((v) => inner(Math.log10(Math.max(v, low))), {
    ticks: (n) => decades(low, high, n), low, high, back: (p) => 10 ** inner.back(p) });
}

function niceTicks(low, high, n) {
  const rough = (high - low || 1) / n;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}

function decades(low, high, n) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  if (last - first < 1) return niceTicks(low, high, n).filter((v) => v > 0);
  if (last - first < 3) return Array.from({ length: last - first + 2 }, (_, i) => 10 ** (first - 1 + i)).flatMap((p) => [p, 2 * p, 5 * p]).filter((v) => v >= low * 0.999 && v <= high * 1.001);
  const every = Math.max(1, Math.ceil((last - first) / n));
  const found = [];
  for (let power = first; power <= last; power += every) found.push(10 ** power);
  return found;
}

// A chart that is drawn anew when its width changes; printed, it scales.
function responsive(holder, draw) {
  let width = 0;
  const again = (force = false) => {
    const now = Math.round(holder.clientWidth);
    if (!now || (now === width && !force)) return;
    width = now;
    draw(width);
  };
  new ResizeObserver(() => again()).observe(holder);
  again();
  return () => again(true);
}

function canvas(holder, width, height, label) {
  holder.replaceChildren();
  return shape(holder, 'svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label });
}

function axes(svg, x, y, box, names, n = {}) {
  for (const value of y ? y.ticks(n.y ?? 5) : []) {
    shape(svg, 'line', { class: 'grid', x1: box.left, x2: box.right, y1: y(value), y2: y(value) });
    shape(svg, 'text', { x: box.left - 7, y: y(value) + 4, 'text-anchor': 'end' }, (n.written ?? tick)(value));
  }
  shape(svg, 'line', { class: 'axis', x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom });
  for (const value of x ? x.ticks(n.x ?? 6) : []) {
    shape(svg, 'line', { class: 'axis', x1: x(value), x2: x(value), y1: box.bottom, y2: box.bottom + 4 });
    shape(svg, 'text', { x: x(value), y: box.bottom + 17, 'text-anchor': 'middle' }, tick(value));
  }
  if (names.x) shape(svg, 'text', { x: (box.left + box.right) / 2, y: box.bottom + 34, 'text-anchor': 'middle' }, names.x);
  if (names.y) shape(svg, 'text', { x: box.left - 7, y: box.top - 9, 'text-anchor': 'start' }, names.y).setAttribute('x', Math.max(0, box.left - 40));
}

const path = (points) => points.map(([x, y], i) => `${i ? 'L' : 'M'}${x.toFixed(2)} ${y.toFixed(2)}`).join('');
const paint = (element, styles) => { for (const [key, value] of Object.entries(styles)) element.style.setProperty(key, value); return element; };
const line = (svg, points, color, width = 1.6, dash = null) =>
  paint(shape(svg, 'path', { d: path(points), fill: 'none', 'stroke-width': width, 'stroke-dasharray': dash, 'stroke-linejoin': 'round' }), { stroke: color });

// What is under the pointer, in lines of text.
const tip = at('tip');
function tell(event, lines) {
  tip.replaceChildren();
  for (const text of lines) put(tip, 'p', {}, text);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - box.width - 8);
  const below = event.clientY + 18;
  tip.style.left = Math.max(8, left) + 'px';
  tip.style.top = (below + box.height > window.innerHeight ? event.clientY - box.height - 12 : below) + 'px';
}
function untell() { tip.hidden = true; }

// A place along the x axis under the pointer, in the chart's own units.
function placed(svg, event) {
  const box = svg.getBoundingClientRect();
  const scale = svg.viewBox.baseVal.width / box.width;
  return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
}
function hover(svg, lines) {
  svg.addEventListener('pointermove', (event) => {
    const found = lines(...placed(svg, event));
    if (found) tell(event, found); else untell();
  });
  svg.addEventListener('pointerleave', untell);
}

// The numbers behind a chart, for those who want them or cannot see it.
function numbersOf(holder, heads, rows) {
  const details = put(holder, 'details');
  put(details, 'summary', {}, 'Show the numbers');
  let filled = false;
  details.addEventListener('toggle', () => {
    if (filled || !details.open) return;
    filled = true;
    const table = put(put(details, 'div', { tabindex: 0 }), 'table');
    const head = put(put(table, 'thead'), 'tr');
    heads.forEach((text) => put(head, 'th', { scope: 'col' }, text));
    const body = put(table, 'tbody');
    for (const row of rows()) {
      const line = put(body, 'tr');
      row.forEach((text) => put(line, 'td', {}, text));
    }
  });
}
