// Each chart: numbers in, an SVG into its place.

function drawSpectrum(holder, width, base, now, k, d) {
  const height = Math.max(280, Math.min(400, width * 0.8));
  const box = { left: 50, right: width - 12, top: 24, bottom: height - 44 };
  const shares = (values) => { const sum = values.reduce((a, b) => a + b, 0); return values.map((v) => v / sum); };
  const before = shares(Array.from(base));
  const after = shares(now);
  const changed = after.length !== before.length || after.some((v, i) => Math.abs(v - before[i]) > 1e-12);
  const low = Math.max(Math.min(...before, ...after), Math.max(...before) * 1e-8);
  const x = logarithmic(1, Math.max(2, before.length), box.left, box.right);
  const y = logarithmic(low * 0.8, Math.min(1, Math.max(...before, ...after) * 1.35), box.bottom, box.top);
  const svg = canvas(holder, width, height, `Spectrum: the strongest of ${before.length} directions holds ${percent(before[0])} of the variance${changed ? `; after the correction ${percent(after[0])}` : ''}`);
  axes(svg, x, y, box, { x: 'principal direction, strongest first', y: 'share of the variance' }, { x: 4, y: 5 });
  const even = y(1 / d);
  if (1 / d >= low * 0.8) {
    line(svg, [[box.left, even], [box.right, even]], 'var(--base)', 1, '2 4');
    shape(svg, 'text', { x: box.left + 6, y: even - 5 }, `equal variances: 1/${d}`);
  }
  line(svg, before.map((v, i) => [x(i + 1), y(v)]), changed ? 'var(--base)' : 'var(--accent)', changed ? 1.2 : 1.8);
  if (changed) {
    line(svg, after.map((v, i) => [x(i + 1 + k), y(v)]), 'var(--accent)', 2);
    shape(svg, 'text', { x: box.right, y: box.top - 9, 'text-anchor': 'end' }, 'grey: uncorrected');
    for (let i = 0; i < k; i++) paint(shape(svg, 'circle', { cx: x(i + 1), cy: y(before[i]), r: 3, fill: 'none' }), { stroke: 'var(--warn)' });
  } else if (before.length <= 30) before.forEach((v, i) => shape(svg, 'circle', { cx: x(i + 1), cy: y(v), r: 2.4, class: 'c0' }));
  const cross = line(svg, [[0, 0]], 'var(--base)', 1);
  const running = []; before.reduce((sum, v, i) => (running[i] = sum + v), 0);
  hover(svg, (px) => {
    const i = Math.min(before.length, Math.max(1, Math.round(x.back(px)))) - 1;
    cross.setAttribute('d', path([[x(i + 1), box.top], [x(i + 1), box.bottom]]));
    const lines = [`direction ${i + 1} of ${before.length}`, `${percent(before[i])} of the variance; ${percent(running[i])} up to here`];
    if (changed) lines.push(i < k ? 'removed' : `after the correction ${percent(after[i - k])}`);
    return lines;
  });
  numbersOf(holder, ['direction', 'share', 'cumulative share', 'corrected share'], () =>
    before.slice(0, 60).map((v, i) => [String(i + 1), percent(v), percent(running[i]), i < k ? 'removed' : percent(after[i - k])]));
}

const KINDS = { random: ['random pairs', 'var(--base)', null], same: ['pairs with the same label', 'var(--c0)', null], other: ['pairs with different labels', 'var(--c1)', '5 3'] };

function drawCosines(holder, width, cosines, threshold) {
  const height = Math.max(240, Math.min(320, width * 0.4));
  const box = { left: 44, right: width - 12, top: 26, bottom: height - 44 };
  const n = cosines.counts.random.length;
  const step = (cosines.high - cosines.low) / n;
  const density = Object.fromEntries(Object.entries(cosines.counts).map(([name, counts]) => [name, counts.map((c) => c / cosines.n_pairs[name] / step)]));
  const x = linear(cosines.low, cosines.high, box.left, box.right);
  const y = linear(0, Math.max(...Object.values(density).flat()) * 1.2, box.bottom, box.top);
  const svg = canvas(holder, width, height, `Histogram of cosines: the mean of random pairs is ${signed(cosines.mean.random)}, and 1 % of them exceed ${signed(cosines.one_percent)}`);
  axes(svg, x, y, box, { x: 'cosine of two vectors', y: 'density of pairs' }, { y: 4, x: width < 500 ? 5 : 10 });
  const steps = (values) => values.flatMap((v, i) => [[x(cosines.low + i * step), y(v)], [x(cosines.low + (i + 1) * step), y(v)]]);
  const fill = [[box.left, box.bottom], ...steps(density.random), [box.right, box.bottom]];
  paint(shape(svg, 'path', { d: path(fill), 'fill-opacity': 0.28 }), { fill: 'var(--base)' });
  for (const [name, values] of Object.entries(density)) line(svg, steps(values), KINDS[name][1], name === 'random' ? 1 : 1.8, KINDS[name][2]);
  const mark = (value, text, row) => {
    line(svg, [[x(value), box.top + 2], [x(value), box.bottom]], 'var(--soft)', 1, '2 3');
    const right = x(value) > (box.left + box.right) / 2;
    shape(svg, 'text', { x: x(value) + (right ? -5 : 5), y: box.top + 12 + 15 * row, 'text-anchor': right ? 'end' : 'start' }, text);
  };
  mark(cosines.one_percent, `1\u00a0% ${width < 480 ? '' : 'of random pairs '}above ${signed(cosines.one_percent, 3)}`, 0);
  if (cosines.best) mark(cosines.best.threshold, `${width < 480 ? 'best: ' : 'best balanced accuracy: '}${signed(cosines.best.threshold, 3)}`, 1);
  line(svg, [[x(threshold), box.top - 6], [x(threshold), box.bottom]], 'var(--warn)', 2);
  hover(svg, (px) => {
    const i = Math.floor((x.back(px) - cosines.low) / step);
    if (i < 0 || i >= n) return null;
    return [`cosine ${signed(cosines.low + i * step)} to ${signed(cosines.low + (i + 1) * step)}`,
      ...Object.entries(cosines.counts).map(([name, counts]) => `${KINDS[name][0]}: ${percent(counts[i] / cosines.n_pairs[name])}`)];
  });
}

function drawSilhouettes(holder, width, rows) {
  const columns = width > 720 && rows.length > 16 ? 2 : 1;
  const gap = 36, row = 19, each = (width - gap * (columns - 1)) / columns;
  const perColumn = Math.ceil(rows.length / columns);
  const height = perColumn * row + 44;
  const named = Math.min(each * 0.42, 30 + 6.6 * Math.max(...rows.map((r) => r.name.length)));
  const low = Math.min(0, ...rows.map((r) => r.quantiles[0])), high = Math.max(0.2, ...rows.map((r) => r.quantiles[4]));
  const svg = canvas(holder, width, height, `Silhouette of ${rows.length} labels, from ${signed(rows[0].mean)} (${rows[0].name}) down to ${signed(rows.at(-1).mean)} (${rows.at(-1).name})`);
  for (let c = 0; c < columns; c++) {
    const start = c * (each + gap), box = { left: start + named, right: start + each - 48, top: 6, bottom: height - 26 };
    const x = linear(low, high, box.left, box.right);
    for (const value of x.ticks(each < 420 ? 3 : 5)) {
      shape(svg, 'line', { class: 'grid', x1: x(value), x2: x(value), y1: 0, y2: box.bottom });
      shape(svg, 'text', { x: x(value), y: box.bottom + 15, 'text-anchor': 'middle' }, tick(value));
    }
    line(svg, [[x(0), 0], [x(0), box.bottom]], 'var(--base)', 1);
    rows.slice(c * perColumn, (c + 1) * perColumn).forEach((r, i) => {
      const y = 10 + i * row, color = r.mean < 0 ? 'var(--c1)' : 'var(--c0)';
      const letters = Math.max(4, Math.floor((named - 14) / 6.4));
      shape(svg, 'text', { x: box.left - 10, y: y + 4, 'text-anchor': 'end', class: 'strong' }, r.name.length > letters ? r.name.slice(0, letters - 1) + '…' : r.name);
      line(svg, [[x(r.quantiles[0]), y], [x(r.quantiles[4]), y]], color, 1);
      paint(line(svg, [[x(r.quantiles[1]), y], [x(r.quantiles[3]), y]], color, 6), { opacity: 0.35 });
      shape(svg, 'circle', { cx: x(r.mean), cy: y, r: 3.6, class: r.mean < 0 ? 'c1' : 'c0' });
      shape(svg, 'text', { x: start + each, y: y + 4, 'text-anchor': 'end', class: 'strong' }, signed(r.mean, 3));
    });
  }
  hover(svg, (px, py) => {
    const c = Math.min(columns - 1, Math.floor(px / (each + gap)));
    const i = c * perColumn + Math.round((py - 10) / row);
    const r = py < perColumn * row && i < Math.min(rows.length, (c + 1) * perColumn) ? rows[i] : null;
    return r && [r.name, `${count(r.n)} points, mean silhouette ${signed(r.mean, 3)}${r.interval ? ` (${signed(r.interval[0], 3)} to ${signed(r.interval[1], 3)})` : ''}`,
      `middle 50 %: ${signed(r.quantiles[1])} to ${signed(r.quantiles[3])}; middle 80 %: ${signed(r.quantiles[0])} to ${signed(r.quantiles[4])}`];
  });
  numbersOf(holder, ['label', 'points', 'mean', '10 %', '25 %', 'median', '75 %', '90 %'], () =>
    rows.map((r) => [r.name, count(r.n), signed(r.mean, 4), ...r.quantiles.map((q) => signed(q, 3))]));
}

function drawFrontier(holder, width, frontier) {
  const narrow = width < 480;
  const height = Math.max(230, Math.min(300, width * 0.36));
  const box = { left: 44, right: width - 16, top: 26, bottom: height - 44 };
  const x = linear(0, 1, box.left, box.right), y = linear(0, 1, box.bottom, box.top);
  const svg = canvas(holder, width, height, `IsoScore ${shown(frontier.isoscore)}; with ${percent(frontier.between_share)} of the variance between labels it can be at most ${shown(frontier.ceiling)}`);
  const curve = frontier.curve.map(([a, b]) => [x(a), y(b)]);
  paint(shape(svg, 'path', { d: path([[box.left, box.top], ...curve, [box.right, box.top]]) + 'Z' }), { fill: 'var(--shade)' });
  axes(svg, x, y, box, { x: 'share of the variance between labels', y: 'IsoScore' }, { y: 5, x: 5 });
  line(svg, curve, 'var(--soft)', 1.8);
  shape(svg, 'text', { x: box.right - 8, y: box.top + 15, 'text-anchor': 'end' }, narrow ? 'impossible' : `impossible with ${count(frontier.n_labels)} labels in ${count(frontier.n_dims)} dimensions`);
  const px = x(frontier.between_share), py = y(frontier.isoscore), ceiling = y(frontier.ceiling);
  line(svg, [[px, py], [px, ceiling]], 'var(--accent)', 1.2, '3 3');
  shape(svg, 'circle', { cx: px, cy: py, r: 5.5, class: 'c0' });
  const right = px > box.left + (narrow ? 62 : 140); // room on the side away from the curve
  shape(svg, 'text', { x: px + (right ? -11 : 11), y: py + 4, 'text-anchor': right ? 'end' : 'start', class: 'strong' }, `${narrow ? '' : 'this space: '}${shown(frontier.isoscore)}`);
  paint(shape(svg, 'circle', { cx: px, cy: ceiling, r: 3.5, fill: 'none' }), { stroke: 'var(--accent)' });
  if (ceiling < py - 22) shape(svg, 'text', { x: px + (right ? -11 : 11), y: ceiling + 4 + (right ? 0 : 11), 'text-anchor': right ? 'end' : 'start' }, `${narrow ? '≤' : 'at most'} ${shown(frontier.ceiling)}`);
  hover(svg, (mx) => {
    const share = Math.min(1, Math.max(0, x.back(mx)));
    const [, top] = frontier.curve.reduce((a, b) => (Math.abs(b[0] - share) < Math.abs(a[0] - share) ? b : a));
    return [`with ${percent(share)} of the variance between labels`, `the IsoScore is at most ${shown(top)}`];
  });
}

function drawDimensions(holder, width, dimensions) {
  const top = dimensions.top, height = 230;
  const box = { left: 50, right: width - 8, top: 24, bottom: height - 44 };
  const each = (box.right - box.left) / top.length;
  const most = Math.max(0, ...top.map((t) => t.share)), least = Math.min(0, ...top.map((t) => t.share));
  const y = linear(least * 1.1, Math.max(most, dimensions.even) * 1.12, box.bottom, box.top);
  const svg = canvas(holder, width, height, `Contributions to the mean cosine: dimension ${top[0].dimension} has ${percent(top[0].share)} of them`);
  axes(svg, null, y, box, { x: 'dimension, strongest first', y: 'share of all contributions' }, { y: 4, written: percent });
  const every = Math.ceil(30 / each);
  top.forEach((t, i) => {
    const left = box.left + i * each, zero = y(0), edge = y(t.share);
    shape(svg, 'rect', { x: left + each * 0.14, width: each * 0.72, y: Math.min(zero, edge), height: Math.max(0.5, Math.abs(zero - edge)), class: t.share < 0 ? 'c1' : 'c0' });
    if (i % every === 0) shape(svg, 'text', { x: left + each / 2, y: box.bottom + 17, 'text-anchor': 'middle' }, String(t.dimension));
  });
  line(svg, [[box.left, y(dimensions.even)], [box.right, y(dimensions.even)]], 'var(--soft)', 1, '2 4');
  shape(svg, 'text', { x: box.right, y: box.top - 9, 'text-anchor': 'end' }, `dotted: equal shares, ${percent(dimensions.even)}`);
  hover(svg, (px) => {
    const t = top[Math.floor((px - box.left) / each)];
    return t && [`dimension ${t.dimension}`, `adds ${signed(t.contribution, 5)} to the mean cosine of ${signed(dimensions.total, 4)}`, `${percent(t.share)} of all contributions`];
  });
  numbersOf(holder, ['dimension', 'contribution', 'share'], () => top.map((t) => [String(t.dimension), signed(t.contribution, 6), percent(t.share)]));
}

function drawCurve(holder, width, steps, series) {
  const height = 150, box = { left: 46, right: width - 8, top: 10, bottom: height - 36 };
  const known = [...series.low, ...series.high].filter((v) => v !== null);
  let low = Math.min(...known), high = Math.max(...known);
  if (low === high) { low -= 0.5; high += 0.5; }
  const x = linear(steps[0], steps.at(-1), box.left, box.right), y = linear(low - (high - low) * 0.05, high + (high - low) * 0.05, box.bottom, box.top);
  const last = series.mean.findLast((v) => v !== null);
  const svg = canvas(holder, width, height, `${series.name} from ${shown(series.mean.find((v) => v !== null))} to ${shown(last)}`);
  axes(svg, x, y, box, { x: 'updates' }, { x: 3, y: 4 });
  const kept = steps.map((_, i) => i).filter((i) => series.mean[i] !== null);
  const band = [...kept.map((i) => [x(steps[i]), y(series.high[i])]), ...kept.toReversed().map((i) => [x(steps[i]), y(series.low[i])])];
  paint(shape(svg, 'path', { d: path(band) + 'Z', 'fill-opacity': 0.2 }), { fill: 'var(--accent)' });
  line(svg, kept.map((i) => [x(steps[i]), y(series.mean[i])]), 'var(--accent)', 1.6);
  hover(svg, (px) => {
    const i = kept.reduce((a, b) => (Math.abs(x(steps[b]) - px) < Math.abs(x(steps[a]) - px) ? b : a));
    return [`${series.name} after ${count(steps[i])} updates`, `${shown(series.mean[i])} (lowest and highest seed: ${shown(series.low[i])}, ${shown(series.high[i])})`];
  });
}

// A number's place in its range: its interval as a bar, the ceiling its labels allow as a tick.
function drawGauge(holder, metric) {
  const [low, high] = metric.bounds, width = 112;
  const x = linear(low, high, 4, width - 4);
  const svg = shape(holder, 'svg', { viewBox: `0 0 ${width} 16`, width, height: 16, 'aria-hidden': 'true' });
  shape(svg, 'line', { class: 'axis', x1: 4, x2: width - 4, y1: 8, y2: 8 });
  if (low < 0) shape(svg, 'line', { class: 'axis', x1: x(0), x2: x(0), y1: 4, y2: 12 });
  const number = Math.min(high, Math.max(low, metric.number));
  if (metric.limits) paint(line(svg, [[x(metric.limits[0]), 8], [Math.max(x(metric.limits[1]), x(metric.limits[0]) + 1), 8]], 'var(--accent)', 7), { opacity: 0.3 });
  if (metric.highest !== null) line(svg, [[x(metric.highest), 2], [x(metric.highest), 14]], 'var(--warn)', 2);
  shape(svg, 'circle', { cx: x(number), cy: 8, r: 3.6, class: 'c0' });
}
