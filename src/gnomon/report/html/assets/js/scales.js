// Colours, and the way from numbers to pixels.
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
let printing = false;

function theme() {
  if (printing) return "light";
  return root.dataset.theme || (system.matches ? "dark" : "light");
}

function colours() {
  return page.colours[theme()];
}

function setLineColours() {
  colours().lines.forEach((colour, index) => root.style.setProperty(`--s${index}`, colour));
}

function lineColour(index, role) {
  return role === "value" ? `var(--s${index % 8})` : "var(--chance)";
}

function cellColour(field, value) {
  if (!Number.isFinite(value)) return null;
  if (field.palette === "categories") return page.colours.categories[Math.round(value) % page.colours.categories.length];
  const table = colours()[field.palette];
  const [low, high] = field.limits;
  const place = high > low ? (value - low) / (high - low) : 0;
  return table[Math.round(Math.min(Math.max(place, 0), 1) * (table.length - 1))];
}

// A scale maps values to pixels. On a logarithmic axis zero stands half the smallest positive value away, so that offset 0 has a place.
function scale(low, high, start, end, log = false, zero = null) {
  const into = log ? (value) => Math.log(value <= 0 ? zero : value) : (value) => value;
  let first = into(low);
  let last = into(high);
  if (!(last > first)) [first, last] = [first - 0.5, last + 0.5];
  const map = (value) => start + ((into(value) - first) / (last - first)) * (end - start);
  map.log = log;
  map.zero = zero;
  map.low = low;
  map.high = high;
  return map;
}

function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
}

function ticks(low, high, most, log, whole, given = null) {
  if (log) return logTicks(low, high, most, given);
  const span = high - low || 1;
  const rough = span / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  if (whole) step = Math.max(1, Math.round(step));
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + span * 1e-9; i++) out.push(Number((i * step).toPrecision(12)));
  return out;
}

// At the values themselves when they are few, else at powers of two over a moderate range, else at powers of ten.
function logTicks(low, high, most, given) {
  const zero = low <= 0 ? [0] : [];
  const smallest = low > 0 ? low : Math.min(...(given || [1]).filter((value) => value > 0));
  if (given && given.length > 12 && high / smallest < 5000) {
    const powers = [];
    for (let power = Math.ceil(Math.log2(smallest)); 2 ** power <= high; power++) powers.push(2 ** power);
    const step = Math.ceil((powers.length + zero.length) / Math.max(most, 2));
    return [...zero, ...powers.filter((_, index) => index % step === 0)];
  }
  if (given && given.length <= 12) {
    const positive = given.filter((value) => value > 0);
    const step = Math.ceil((positive.length + zero.length) / Math.max(most, 2));
    return [...zero, ...positive].filter((_, index) => index % step === 0);
  }
  const from = Math.floor(Math.log10(smallest));
  const to = Math.ceil(Math.log10(high));
  const step = Math.max(1, Math.ceil((to - from + 1) / Math.max(most, 2)));
  const out = [];
  for (let power = from; power <= to; power += step) out.push(10 ** power);
  let kept = out.filter((value) => value >= smallest * 0.999 && value <= high * 1.001);
  if (kept.length < 2) {
    kept = [];
    for (let power = from; power <= to; power++) for (const factor of [1, 2, 5]) kept.push(factor * 10 ** power);
    kept = kept.filter((value) => value >= low * 0.999 && value <= high * 1.001);
    const every = Math.ceil(kept.length / Math.max(most, 2));
    kept = kept.filter((_, index) => index % every === 0);
  }
  return kept;
}
