// The page: each section from its part of the contents.
const metric = Object.fromEntries(contents.metrics.map((m) => [m.name, m]));

function showHead() {
  at('title').textContent = contents.title;
  at('subtitle').textContent = contents.subtitle;
  contents.headline.forEach((text) => put(at('headline'), 'p', {}, text));
  contents.notes.forEach((text) => put(at('notes'), 'li', {}, text));
  const tiles = [
    ['isoscore', 'IsoScore'], ['mean_cosine', 'mean cosine'], ['effective_rank', 'effective rank'],
    ['silhouette', 'silhouette'], ['between_share', 'between labels'], ['top_dimension_share', 'strongest dimension']];
  for (const [name, title] of tiles.filter(([key]) => metric[key]).slice(0, 6)) {
    const tile = put(at('tiles'), 'div');
    put(tile, 'dt', {}, title);
    const value = put(tile, 'dd');
    put(value, 'div', { class: 'big', title: metric[name].interval ? `95 % interval ${metric[name].interval}` : `range ${metric[name].range}` }, short(metric[name]));
    put(value, 'div', { class: 'under' }, under(metric[name]));
  }
}

function short(m) {
  if (m.number === null) return '–';
  if (m.name === 'between_share' || m.name === 'top_dimension_share') return percent(m.number);
  return m.name === 'effective_rank' ? m.number.toFixed(1) : signed(m.number, 3);
}

function under(m) {
  if (m.name === 'isoscore') return m.ceiling ? `at most ${m.ceiling} with these labels` : '1 means isotropic, 0 one direction';
  if (m.name === 'mean_cosine') return 'of two random vectors';
  if (m.name === 'effective_rank') return `of ${count(contents.n_dims)} dimensions`;
  if (m.name === 'silhouette') return '1 means clear clusters, 0 none';
  return m.name === 'between_share' ? 'of the variance' : 'of the mean cosine';
}

function showMetrics() {
  const table = at('metrics');
  const head = put(put(table, 'thead'), 'tr');
  [['metric'], ['value', 'number'], ['± 95 %'], ['within its range'], ['meaning']].forEach(([text, kind]) => put(head, 'th', { scope: 'col', class: kind ?? null }, text));
  let family = null, body = null;
  for (const m of contents.metrics) {
    if (m.family !== family) {
      family = m.family;
      body = put(table, 'tbody');
      put(put(body, 'tr', { class: 'family' }), 'th', { colspan: 5, scope: 'colgroup' }, family);
    }
    const row = put(body, 'tr');
    put(put(row, 'td', { class: 'first' }), 'code', {}, m.name);
    put(row, 'td', { class: 'number', title: m.interval ? `95 % interval ${m.interval}` : null }, m.value);
    put(row, 'td', { class: 'plain' }, m.half_width);
    const gauge = put(row, 'td', { class: 'gauge' });
    if (m.bounds && m.number !== null) drawGauge(gauge, m);
    const says = put(row, 'td', { class: 'says' });
    put(says, 'span', {}, m.meaning);
    put(says, 'span', { class: 'note' }, `Range: ${m.range}. A high value means: ${m.high}. ${m.paper}`);
  }
}

function readout(holder, name, value, was, key = null) {
  const group = put(holder, 'div');
  put(group, 'dt', {}, name);
  const place = put(group, 'dd', { 'data-name': key, 'data-value': value.number ?? null }, value.text);
  if (was) put(place, 'span', { class: 'was' }, was);
}

function showAudit() {
  const audit = contents.audit;
  at('audit').hidden = false;
  at('audit-lead').textContent = audit.lead;
  const table = at('audit-table');
  const head = put(put(table, 'thead'), 'tr');
  [['finding'], ['share', 'number'], ['95 % interval'], ['rows']].forEach(([text, kind]) => put(head, 'th', { scope: 'col', class: kind ?? null }, text));
  const body = put(table, 'tbody');
  for (const one of audit.findings) {
    const row = put(body, 'tr');
    put(row, 'td', { class: 'first' }, one.name);
    put(row, 'td', { class: 'number' }, one.share);
    put(row, 'td', { class: 'plain' }, one.interval);
    const says = put(row, 'td', { class: 'says' });
    put(says, 'span', {}, one.headline);
    one.examples.forEach((text) => put(says, 'span', { class: 'note' }, text));
  }
}

const LISTED = 12; // rows that are named

function showSelected(rows, isNew) {
  const more = rows.length > LISTED ? ` and ${count(rows.length - LISTED)} more` : '';
  at('selected').textContent = rows.length ? `${count(rows.length)} selected: ${rows.length === 1 ? 'row' : 'rows'} ${rows.slice(0, LISTED).map(count).join(', ')}${more}` : '';
  if (isNew && contents.is_widget) tellHost({ rows });
}

// The notebook around a widget. Its origin is not known here, and nothing secret is sent.
function tellHost(message) { window.parent.postMessage({ isoscope: true, ...message }, '*'); }

function showWidget(picture) {
  document.body.className = 'widget';
  window.addEventListener('message', (event) => { if (event.source === window.parent && Array.isArray(event.data.selected)) picture.select(event.data.selected); });
  new ResizeObserver(() => tellHost({ height: document.body.offsetHeight })).observe(document.body);
  tellHost({ ready: true });
}

function showWhatIf() {
  const points = contents.points;
  at('what-if').hidden = false;
  const removed = at('removed'), strength = at('strength'), center = at('center');
  removed.max = whatIf.maxRemoved;
  const base = whatIf.at(0, 0, false);
  const picture = scatter(at('scatter'), points, { onPoint: (lines) => { at('point').textContent = lines.join(' · '); }, onSelect: showSelected });
  drawLegend(at('legend'), points, (label) => picture.only(label));
  const flat = floats(points.coordinates), columns = points.n_columns;
  const column = (j, scale) => Float64Array.from({ length: points.n }, (_, i) => (j < columns ? flat[i * columns + j] * scale : 0));
  let state = null, shownPicture = 'principal', centred = false;
  const redrawSpectrum = responsive(at('spectrum'), (width) => { if (state) drawSpectrum(at('spectrum'), width, whatIf.eigenvalues, state.spectrum, Number(removed.value), whatIf.d); });

  function showPicture() {
    const k = Number(removed.value), s = Number(strength.value);
    if (shownPicture !== 'principal') {
      const xy = floats(points.pictures[shownPicture]);
      picture.show(xy.filter((_, i) => i % 2 === 0), xy.filter((_, i) => i % 2 === 1), [shownPicture, '']);
      return;
    }
    const scale = (j) => (whatIf.eigenvalues[j] ?? 1) ** (-s / 2);
    picture.show(column(k, scale(k)), column(k + 1, scale(k + 1)), [`principal direction ${k + 1}`, `principal direction ${k + 2}`]);
  }

  function showCounts(values, changed) {
    const needed = (from, share) => { const sum = from.reduce((a, b) => a + b, 0); let held = 0; return from.findIndex((v) => (held += v) >= share * sum * (1 - 1e-9)) + 1; };
    const list = at('counts');
    list.replaceChildren();
    for (const share of [0.5, 0.9, 0.99]) readout(list, `directions for ${percent(share)}`, { text: count(needed(values, share)) }, changed ? `was ${count(needed(base.spectrum, share))}` : '');
  }

  function update() {
    const k = Number(removed.value), s = Number(strength.value);
    center.disabled = k > 0 || s > 0;
    center.checked = center.disabled || centred; // both are about the mean
    state = whatIf.at(k, s, center.checked);
    const changed = k > 0 || s > 0 || center.checked;
    at('removed-shown').textContent = k === 0 ? 'none' : `the strongest ${k}`;
    at('strength-shown').textContent = s.toFixed(2);
    const list = at('readouts');
    list.replaceChildren();
    const was = (value, digits) => (changed ? `was ${signed(value, digits)}` : '');
    readout(list, 'IsoScore', { text: signed(state.isoscore, 4), number: state.isoscore }, was(base.isoscore, 4), 'isoscore');
    const cosine = state.meanCosine;
    readout(list, 'mean cosine', { text: cosine === null ? '–' : signed(cosine, 4), number: cosine }, base.meanCosine === null ? '' : was(base.meanCosine, 4), 'mean_cosine');
    readout(list, 'effective rank', { text: state.effectiveRank.toFixed(1), number: state.effectiveRank }, was(base.effectiveRank, 1), 'effective_rank');
    presets.forEach(([, wanted, button]) => button.setAttribute('aria-pressed', String(wanted[0] === k && wanted[1] === s && (k > 0 || s > 0 || wanted[2] === center.checked))));
    showCounts(state.spectrum, changed);
    redrawSpectrum();
    showPicture();
  }

  const top = Math.min(whatIf.maxRemoved, Math.max(1, Math.floor(whatIf.d / 100)));
  const presets = [['Uncorrected', [0, 0, false]], ['Centred', [0, 0, true]], [`All but the top ${top}`, [top, 0, true]], ['Half whitened', [0, 0.5, true]], ['Whitened', [0, 1, true]]]
    .map(([name, wanted]) => {
      const button = put(at('presets'), 'button', { type: 'button', 'aria-pressed': 'false' }, name);
      button.addEventListener('click', () => { [removed.value, strength.value] = wanted; centred = wanted[2] && !wanted[0] && !wanted[1]; update(); });
      return [name, wanted, button];
    });
  [removed, strength].forEach((input) => input.addEventListener('input', update));
  center.addEventListener('input', () => { centred = center.checked; update(); });

  const pictures = Object.keys(points.pictures);
  if (pictures.length) {
    const tabs = [['principal', 'Principal directions'], ...pictures.map((name) => [name, name])].map(([name, text]) => {
      const button = put(at('pictures'), 'button', { type: 'button', 'aria-pressed': String(name === 'principal') }, text);
      button.addEventListener('click', () => { shownPicture = name; tabs.forEach(([other, b]) => b.setAttribute('aria-pressed', String(other === name))); showPicture(); });
      return [name, button];
    });
  }
  const sampled = points.n < contents.n ? `${count(points.n)} of ${count(contents.n)} points, drawn at random` : `all ${count(points.n)} points`;
  at('points-note').textContent = `${sampled[0].toUpperCase()}${sampled.slice(1)}${points.labels ? ', by label' : ''}. Move the pointer over a point, or use the arrow keys, to see what it is. Drag, click or press the space bar to select points.`;
  const all = metric.mean_cosine && metric.mean_cosine.number !== null ? ` (for all vectors, uncorrected: ${metric.mean_cosine.value})` : '';
  at('what-if-note').textContent = `All numbers are computed from all ${count(contents.n)} vectors${whatIf.n < contents.n ? `, except for the mean cosine, which is computed from a sample of ${count(whatIf.n)}${all}` : ''}. Removing directions and whitening subtract the mean first.`
    + (whatIf.rank < whatIf.d ? ` ${count(whatIf.d - whatIf.rank)} of ${count(whatIf.d)} directions have no variance, and whitening leaves them so here; the correction Whiten regularises the covariance instead.` : '');
  update();
  return picture;
}

function showCosines() {
  const cosines = contents.cosines;
  at('cosines').hidden = false;
  const drawn = cosines.is_exact ? 'All pairs are used.' : 'At most 200,000 pairs of each kind are used, drawn at random.';
  at('cosine-lead').textContent = `The cosines of pairs of vectors, and similarity thresholds: ${cosines.best ? 'those that few random pairs exceed, and the one that tells pairs with the same label from the others with the best balanced accuracy' : 'those that few random pairs exceed'}. ${drawn}`;
  for (const name of Object.keys(cosines.counts)) {
    const item = put(at('cosine-key'), 'span');
    const icon = shape(item, 'svg', { viewBox: '0 0 26 10', width: 26, height: 10, 'aria-hidden': 'true' });
    line(icon, [[0, 5], [26, 5]], KINDS[name][1], name === 'random' ? 6 : 2, KINDS[name][2]);
    put(item, 'span', {}, `${KINDS[name][0]} (${count(cosines.n_pairs[name])}), mean ${signed(cosines.mean[name], 3)}`);
  }
  const n = cosines.counts.random.length, step = (cosines.high - cosines.low) / n;
  const above = Object.fromEntries(Object.entries(cosines.counts).map(([name, counts]) => {
    let sum = 0;
    const shares = new Array(n + 1).fill(0);
    for (let i = n - 1; i >= 0; i--) { sum += counts[i]; shares[i] = sum / cosines.n_pairs[name]; }
    return [name, shares];
  }));
  const slider = at('threshold');
  slider.max = n;
  const start = cosines.best ? cosines.best.threshold : cosines.one_percent;
  slider.value = Math.round((start - cosines.low) / step);
  const redraw = responsive(at('cosine-chart'), (width) => drawCosines(at('cosine-chart'), width, cosines, cosines.low + slider.value * step));
  const update = () => {
    at('threshold-shown').textContent = signed(cosines.low + slider.value * step, 3);
    slider.setAttribute('aria-valuetext', at('threshold-shown').textContent);
    const list = at('threshold-shares');
    list.replaceChildren();
    for (const name of Object.keys(above)) readout(list, `${KINDS[name][0]} above the threshold`, { text: percent(above[name][slider.value]), number: above[name][slider.value] }, '', name);
    redraw();
  };
  slider.addEventListener('input', update);
  update();
  const useful = [];
  if (cosines.knows.one_percent) useful.push(['exceeded by 1 % of random pairs', cosines.one_percent, `One in a hundred pairs of random rows lies above it.${contents.search ? ' Pairs of queries and documents have another threshold, see below.' : ''}`]);
  if (cosines.knows.one_permille) useful.push(['exceeded by 0.1 % of random pairs', cosines.one_permille, `One in a thousand pairs of random rows lies above it.${contents.search ? '' : ' Queries may differ from the rows: pass them to see (--queries).'}`]);
  if (cosines.best) useful.push(['best balanced accuracy between labels', cosines.best.threshold, `The balanced accuracy is ${percent(cosines.best.balanced_accuracy)}: ${percent(cosines.best.same_above)} of the pairs with the same label lie above it, and ${percent(cosines.best.other_above)} of the pairs with different labels. Of all pairs above it, ${percent(cosines.best.precision)} have the same label (the precision), against ${percent(cosines.best.same_share)} of all pairs. A pair with the same label has the higher cosine in ${percent(cosines.best.auc)} of comparisons (the AUC).`]);
  const table = put(at('threshold-table'), 'table');
  const body = put(table, 'tbody');
  for (const [name, value, means] of useful) {
    const row = put(body, 'tr');
    put(row, 'td', {}, name);
    put(row, 'td', { class: 'number' }, signed(value, 3));
    put(row, 'td', { class: 'says' }, means);
  }
}

function interval(ends, write) { return ends ? `${write(ends[0])} to ${write(ends[1])}` : ''; }

function tableHead(table, names) {
  const head = put(put(table, 'thead'), 'tr');
  names.forEach(([text, kind]) => put(head, 'th', { scope: 'col', class: kind ?? null }, text));
  return put(table, 'tbody');
}

function showSearch() {
  const { search } = contents, unrelated = search.has_relevance ? 'a document that is not relevant to it' : 'a document';
  at('search').hidden = false;
  at('search-lead').textContent = `${count(search.n_queries)} queries search all ${count(search.n_documents)} documents. Similarity thresholds by ${count(search.n_pairs)} pairs of a query and ${unrelated}: queries are often unlike documents, and thresholds of documents do not hold for them.`;
  const cosine = (value) => signed(value, 3), share = percent;
  const heads = [['pairs above it', 'number'], ['cosine', 'number'], ['95 % interval'], ['meaning']];
  let body = tableHead(at('search-thresholds'), heads);
  for (const one of search.thresholds) {
    const row = put(body, 'tr');
    put(row, 'td', { class: 'number' }, share(one.rate));
    put(row, 'td', { class: 'number' }, cosine(one.cosine));
    put(row, 'td', { class: 'plain' }, interval(one.interval, cosine));
    const says = put(row, 'td', { class: 'says' });
    if (one.found !== null) put(says, 'span', {}, `${share(one.found)} of the relevant documents lie above it (${interval(one.found_interval, share)}).`);
    if (one.documents !== null) put(says, 'span', { class: 'note' }, `The threshold of two documents with the same rate, ${cosine(one.documents)}, is exceeded by ${percent(one.rate_there)} of the pairs of a query and ${unrelated}.`);
  }
  body = tableHead(at('search-figures'), [['figure'], ['value', 'number'], ['95 % interval'], ['meaning']]);
  for (const one of search.figures) {
    const row = put(body, 'tr');
    put(put(row, 'td', { class: 'first' }), 'code', {}, one.name);
    put(row, 'td', { class: 'number' }, cosine(one.value));
    put(row, 'td', { class: 'plain' }, interval(one.interval, cosine));
    put(row, 'td', { class: 'says' }, one.meaning);
  }
}

function showLabels() {
  const { silhouette, frontier } = contents;
  at('labels').hidden = false;
  at('label-lead').textContent = `${percent(frontier.between_share)} of the variance lies between the ${count(frontier.n_labels)} labels, the rest within them.${frontier.fair_share === null ? '' : ` Labels with few vectors differ by chance; without that share it is ${percent(frontier.fair_share)}.`}`;
  at('silhouette-note').textContent = 'Whether points are closer to their own label (above 0) or to another one (below 0). Dot: mean. Thick line: the middle 50 % of the points. Thin line: the middle 80 %. '
    + (silhouette.is_exact ? 'Computed from all pairs.' : 'The means are estimated, each with an interval; the lines show a sample of the points.')
    + (silhouette.n_left_out ? ` ${count(silhouette.n_left_out)} labels with values in between are not shown.` : '');
  responsive(at('silhouette'), (width) => drawSilhouettes(at('silhouette'), width, silhouette.rows));
  const corner = (frontier.n_labels - 1) / frontier.n_dims;
  at('frontier-note').textContent = frontier.ceiling >= 0.9995
    ? `These labels do not limit the IsoScore: they would only do so if more than ${percent(Math.min(1, corner))} of the variance lay between them.`
    : `The means of ${count(frontier.n_labels)} labels span at most ${count(Math.min(frontier.n_labels - 1, frontier.n_dims))} of ${count(frontier.n_dims)} dimensions. The more variance lies between the labels, the lower is the highest IsoScore that is possible. This space is ${shown(frontier.distance)} below that ceiling.`;
  responsive(at('frontier'), (width) => drawFrontier(at('frontier'), width, frontier));
  const parts = [['within labels', frontier.parts.within, 'f0'], ['shared by both', frontier.parts.cross, 'f2'], ['between labels', frontier.parts.between, 'f1']];
  const bar = put(at('parts'), 'div', { class: 'bar', role: 'img', 'aria-label': parts.map(([name, share]) => `${name} ${percent(share)}`).join(', ') });
  parts.forEach(([, share, kind]) => paint(put(bar, 'span', { class: kind }), { flex: `${Math.max(share, 0.0001)} 1 0` }));
  const key = put(at('parts'), 'div', { class: 'key' });
  put(key, 'span', {}, 'Where the anisotropy comes from (shares of the sum of squared covariances):');
  for (const [name, share, kind] of parts) {
    const item = put(key, 'span');
    paint(put(item, 'span', { class: kind }), { width: '10px', height: '10px', 'border-radius': '2px' });
    put(item, 'span', {}, `${name} ${percent(share)}`);
  }
}

function showDimensions() {
  const { dimensions } = contents;
  at('dimensions').hidden = false;
  at('dimension-lead').textContent = `The contribution of each dimension to the mean cosine. ${count(dimensions.n_for_half)} of ${count(contents.n_dims)} dimensions make up half of all contributions, by their size. The chart shows the strongest ${dimensions.top.length}.${dimensions.says_little ? ' The mean cosine is near 0, so these shares say little.' : ''}`;
  responsive(at('dimension-chart'), (width) => drawDimensions(at('dimension-chart'), width, dimensions));
}

function showCorrections() {
  const { corrections } = contents;
  at('corrections').hidden = false;
  at('correction-lead').textContent = `Each correction is fitted to and measured on ${corrections.n < contents.n ? `${count(corrections.n)} of the ${count(contents.n)} vectors, drawn at random` : 'all vectors'}.${corrections.tolerance ? ` Silhouettes are estimates, accurate to ± ${corrections.tolerance}.` : ''}`;
  const heads = [['isoscore', 'IsoScore', 4], ['mean_cosine', 'mean cosine', 4], ['effective_rank', 'effective rank', 1], ...(corrections.has_labels ? [['silhouette', 'silhouette', 4]] : [])];
  const table = at('correction-table');
  const head = put(put(table, 'thead'), 'tr');
  put(head, 'th', { scope: 'col' }, 'correction');
  heads.forEach(([, text]) => put(head, 'th', { scope: 'col', class: 'number' }, text));
  const body = put(table, 'tbody'), base = corrections.rows[0];
  for (const row of corrections.rows) {
    const line = put(body, 'tr');
    const first = put(line, 'td');
    put(first, 'code', {}, row.name);
    put(first, 'span', { class: 'note' }, row.why_not ?? row.what);
    for (const [key, text, digits] of heads) {
      const value = row[key] ?? null;
      const cell = put(line, 'td', { class: 'number', 'data-head': text }, value === null ? '–' : signed(value, digits));
      if (row === base || value === null || base[key] === null) continue;
      const change = value - base[key];
      put(cell, 'span', { class: 'note' }, Math.abs(change) < 0.5 * 10 ** -digits ? 'same' : `${change > 0 ? '+' : ''}${signed(change, digits)}`);
    }
  }
}

function showTraining() {
  const run = contents.trajectory;
  at('training').hidden = false;
  at('training-lead').textContent = `${count(run.steps.at(-1))} updates, ${run.n_seeds === 1 ? 'one seed' : `mean of ${run.n_seeds} seeds; bands span the lowest to the highest seed`}.${run.n_left_out ? ` ${run.n_left_out} more columns are not shown.` : ''}`;
  for (const series of run.series) {
    const figure = put(at('curves'), 'figure', { class: 'card' });
    put(put(figure, 'figcaption'), 'h3', {}, series.name);
    const holder = put(figure, 'div', { class: 'chart' });
    responsive(holder, (width) => drawCurve(holder, width, run.steps, series));
  }
}

function showAbout() {
  const { points, what_if: held, silhouette, corrections } = contents;
  const sampled = [
    points.n < contents.n && `points in the scatter plot: ${count(points.n)} of ${count(contents.n)}`,
    held && held.n < contents.n && `mean cosine under “Try a correction”: ${count(held.n)} vectors`,
    contents.cosines && !contents.cosines.is_exact && 'cosines: at most 200,000 pairs of each kind',
    silhouette && !silhouette.is_exact && 'silhouettes: estimates with intervals',
    corrections.n < contents.n && `corrections: ${count(corrections.n)} vectors`,
    corrections.tolerance && `silhouettes after corrections: estimates, accurate to ± ${corrections.tolerance}`].filter(Boolean);
  const facts = [
    sampled.length ? `Computed from a random sample (seed ${contents.seed}): ${sampled.join('; ')}. Everything else is computed from all vectors.` : 'Nothing is sampled: every number is computed from all vectors, every histogram from all pairs.',
    `Written by isoscope ${contents.version}. The page contains all its data; it loads nothing and sends nothing.`];
  facts.forEach((text) => put(at('made'), 'li', {}, text));
}

function showTheme() {
  const button = at('theme'), root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches);
  const say = () => { button.textContent = isDark() ? 'Light' : 'Dark'; button.setAttribute('aria-label', `Switch to ${isDark() ? 'light' : 'dark'} colours`); };
  button.addEventListener('click', () => { root.dataset.theme = isDark() ? 'light' : 'dark'; say(); });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', say);
  say();
}

function showReport() {
  showHead();
  showMetrics();
  if (contents.cosines) showCosines();
  if (contents.search) showSearch();
  if (contents.silhouette) showLabels();
  if (contents.dimensions) showDimensions();
  if (contents.audit) showAudit();
  if (contents.corrections) showCorrections();
  if (contents.trajectory) showTraining();
  showAbout();
}

showTheme();
const picture = whatIf && showWhatIf();
if (contents.is_widget) showWidget(picture);
else showReport();
document.querySelectorAll('main > section:not([hidden])').forEach((section) => {
  put(put(at('sections'), 'li'), 'a', { href: `#${section.id}` }, section.dataset.name);
});
window.isoscope = Object.freeze({ whatIf: (k, s, center = true) => whatIf && whatIf.at(k, s, center) });
