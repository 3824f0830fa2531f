// The numbers the page carries, and how numbers are written.
const contents = JSON.parse(document.getElementById('data').textContent);

function bytes(text) {
  const raw = atob(text);
  const found = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) found[i] = raw.charCodeAt(i);
  return found.buffer;
}
const floats = (text) => new Float32Array(bytes(text));
const doubles = (text) => new Float64Array(bytes(text));

const MINUS = '\u2212';
const grouped = (value, digits) => value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });

// Four decimals, fewer for large numbers, a dash for none: as isoscope's tables show numbers.
function shown(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  const size = Math.abs(value);
  const sign = value < 0 ? MINUS : '';
  if (!Number.isFinite(value)) return sign + '∞';
  if (Number.isInteger(value) && size > 1 && size < 1e6) return sign + grouped(size, 0);
  if (size >= 1e6 || (size > 0 && size < 1e-4)) return sign + size.toExponential(2).replace('e-', 'e' + MINUS).replace('e+', 'e');
  if (size >= 1000) return sign + grouped(size, 1);
  return sign + size.toFixed(size < 100 ? 4 : 2);
}

// A number on an axis: as short as it can be.
function tick(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e5)) {
    const power = Math.floor(Math.log10(size) + 1e-9), factor = Number((size / 10 ** power).toPrecision(3));
    const raised = '10' + String(power).replace('-', '⁻').replace(/\d/g, (d) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[d]);
    return (value < 0 ? MINUS : '') + (factor === 1 ? '' : `${factor}·`) + raised;
  }
  return (value < 0 ? MINUS : '') + String(Number(size.toPrecision(6)));
}

// Less than all is never written as 100 %.
function percent(share) {
  const size = Math.abs(100 * share), nearly = size > 99.5 && size < 100;
  const digits = nearly ? 2 : size >= 10 || size === 0 ? 0 : size >= 1 ? 1 : size >= 0.095 ? 2 : 3;
  return (share < 0 ? MINUS : '') + (nearly ? Math.min(size, 99.99) : size).toFixed(digits) + '\u00a0%';
}

const signed = (value, digits = 2) => (value < 0 && Number(Math.abs(value).toFixed(digits)) > 0 ? MINUS : '') + Math.abs(value).toFixed(digits);
const count = (value) => value.toLocaleString('en-US');
