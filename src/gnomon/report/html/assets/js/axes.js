// The frame of a drawing: axes whose labels never run into each other, whatever the width.
const LETTER = 6.4;
const LINE = 15;
const FONT = '11.5px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const ruler = document.createElement("canvas").getContext("2d");
ruler.font = FONT;
const widths = new Map();

function widthOf(text) {
  const key = String(text);
  if (!widths.has(key)) widths.set(key, ruler.measureText(key).width);
  return widths.get(key);
}

function frame(holder, { x, y, height = 250, top = 8, right = 10 }) {
  const width = Math.max(holder.clientWidth, 220);
  const yTicks = ticks(y.low, y.high, height / 48, y.log, y.whole);
  const left = Math.min(Math.max(...yTicks.map((value) => widthOf(tickText(value))), 14) + 12, width / 3);
  const plot = { left, right: width - right, top: top + LINE + 5, bottom: 0 };
  const span = plot.right - plot.left;
  const labels = xLabels(x, span);
  const rows = labels.rows;
  plot.bottom = plot.top + height;
  const total = plot.bottom + 9 + rows * LINE + LINE + 4;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${total}`, role: "img", "aria-hidden": "true" });
  const pad = x.names.length ? span / x.names.length / 2 : Math.min(8, span / 30);
  const sx = scale(x.low, x.high, plot.left + pad, plot.right - pad, x.log, x.zero);
  const sy = scale(y.low, y.high, plot.bottom, plot.top, y.log, y.zero);
  for (const value of yTicks) {
    svg.append(draw("line", { class: "grid", x1: plot.left, x2: plot.right, y1: sy(value), y2: sy(value) }));
    svg.append(draw("text", { x: plot.left - 6, y: sy(value) + 4, "text-anchor": "end" }, tickText(value)));
  }
  svg.append(draw("line", { class: "axis", x1: plot.left, x2: plot.right, y1: plot.bottom, y2: plot.bottom }));
  labels.shown.forEach(({ at, text }, index) => {
    const place = Math.min(Math.max(sx(at), widthOf(text) / 2), width - widthOf(text) / 2);
    svg.append(draw("line", { class: "axis", x1: sx(at), x2: sx(at), y1: plot.bottom, y2: plot.bottom + 4 }));
    svg.append(draw("text", { x: place, y: plot.bottom + 16 + (index % rows) * LINE, "text-anchor": "middle" }, text));
  });
  svg.append(draw("text", { class: "title", x: 0, y: top + 9 }, cut(y.text, width)));
  svg.append(draw("text", { class: "title", x: plot.right, y: plot.bottom + 16 + rows * LINE, "text-anchor": "end" }, cut(x.text, span)));
  return { svg, sx, sy, plot, width, height: total };
}

function tickText(value) {
  return short(value, 4);
}

function cut(text, room) {
  if (widthOf(text) <= room) return text;
  let kept = text.slice(0, Math.max(Math.floor(room / LETTER), 1));
  while (kept.length > 1 && widthOf(`${kept}…`) > room) kept = kept.slice(0, -1);
  return `${kept}…`;
}

// Labels below the axis: names on as many rows as they need, numbers as many as fit.
function xLabels(x, span) {
  if (x.names.length) {
    const widest = Math.max(...x.names.map((name) => widthOf(name) + 8));
    const each = span / x.names.length;
    const rows = Math.min(Math.ceil(widest / each), 3);
    const room = each * rows - 8;
    const every = widest > each * 3 && room < 5 * LETTER ? Math.ceil((5 * LETTER) / room) : 1;
    const shown = x.names.map((name, at) => ({ at, text: cut(name, Math.max(room, 4 * LETTER)) })).filter(({ at }) => at % every === 0);
    return { shown, rows };
  }
  let most = Math.max(2, Math.floor(span / 46));
  for (; most > 1; most--) {
    const values = ticks(x.low, x.high, most, x.log, x.whole, x.given);
    const shown = values.map((at) => ({ at, text: tickText(at) }));
    const sx = scale(x.low, x.high, 0, span, x.log, x.zero);
    const fits = shown.every((label, i) => !i || sx(label.at) - sx(shown[i - 1].at) > (widthOf(label.text) + widthOf(shown[i - 1].text)) / 2 + 8);
    if (fits) return { shown, rows: 1 };
  }
  return { shown: [], rows: 1 };
}

// Bounds, kind and zero of an axis from its description and the values on it.
function axisOf(described, values, { given = null, pad = 0 } = {}) {
  if (described.names.length) return { ...described, low: 0, high: described.names.length - 1, zero: null, given: null };
  const found = extent(values) || [0, 1];
  let low = Math.min(found[0], described.low ?? found[0]);
  let high = Math.max(found[1], described.high ?? found[1]);
  const positive = [...values].filter((value) => value > 0);
  const log = described.log && positive.length > 0 && low >= 0;
  const zero = log ? Math.min(...positive) / 2 : null;
  if (!log && pad) {
    const room = (high - low || Math.abs(high) || 1) * pad;
    if (described.low === null && !(low >= 0 && low - room < 0)) low -= room;
    else if (described.low === null) low = Math.min(low, 0);
    if (described.high === null) high += room;
  }
  if (log && pad && low > 0) [low, high] = [low / 1.1, high * 1.1];
  return { ...described, low, high, log, zero, given: log ? given : null };
}

function empty(holder, why) {
  holder.replaceChildren(make("p", { class: "empty" }, why));
}
