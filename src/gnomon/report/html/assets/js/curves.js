// Lines with their intervals; of the whole model, or of the chosen head.
function linesOf(figure, layer, head) {
  return figure.lines.map((line, index) => {
    const size = line.shape[line.shape.length - 1];
    let start = 0;
    if (figure.kind === "head-curves") {
      if (layer >= line.shape[0] || (line.shape.length === 3 && head >= line.shape[1])) return { ...line, colour: "", low: null, high: null, y: new Float32Array(size).fill(NaN) };
      start = (line.shape.length === 3 ? layer * line.shape[1] + head : layer) * size;
    }
    const part = (kept) => (kept === null ? null : numbers(kept).subarray(start, start + size));
    return { name: line.name, role: line.role, colour: colourOf(figure, line, index), y: part(line.values), low: part(line.low), high: part(line.high) };
  });
}

function curves(name, figure, holder) {
  const byHead = figure.kind === "head-curves";
  const plot = make("div");
  const legend = make("ul", { class: "legend" });
  const readout = make("p", { class: "readout" });
  holder.append(plot, legend, readout);
  const shared = sharedLimits(figure);
  if (figure.lines.length > 1 || figure.marks) figure.lines.forEach((line, index) => legend.append(legendItem(figure, line, index)));
  if (figure.marks) legend.append(stickItem(figure.marks));

  function render() {
    const lines = linesOf(figure, chosen.layer, chosen.head);
    const at = numbers(figure.at);
    const seen = shared || lines.flatMap((line) => [...line.y, ...(line.low || []), ...(line.high || [])]);
    if (!lines.some((line) => line.y.some(Number.isFinite))) {
      readout.textContent = "";
      empty(plot, byHead ? `Layer ${chosen.layer}, head ${chosen.head} has no value here.` : "No value here; the definitions below say why.");
      return;
    }
    const x = axisOf(figure.x, at, { given: [...at] });
    const y = axisOf(figure.y, seen, { pad: 0.05 });
    const made = frame(plot, { x, y, height: byHead ? 190 : 220 });
    if (!y.log && y.low < 0 && y.high > 0) {
      made.svg.append(draw("line", { class: "zero", x1: made.plot.left, x2: made.plot.right, y1: made.sy(0), y2: made.sy(0) }));
    }
    lines.forEach((line, index) => (x.names.length ? dots(made, at, line, index, lines.length, x) : strokes(made, at, line, index, y)));
    if (figure.marks) sticks(made, sticksOf(figure), x);
    const cross = draw("line", { class: "cross", y1: made.plot.top, y2: made.plot.bottom, visibility: "hidden" });
    made.svg.append(cross);
    made.svg.addEventListener("pointermove", (event) => point(event, made, at, lines, cross));
    made.svg.addEventListener("pointerleave", () => {
      cross.setAttribute("visibility", "hidden");
      readout.textContent = resting();
    });
    plot.replaceChildren(made.svg);
    readout.textContent = resting();
  }

  function resting() {
    if (!byHead) return "";
    return `Layer ${chosen.layer}, head ${chosen.head}${figure.marks ? tallestText(figure) : ""}`;
  }

  function point(event, made, at, lines, cross) {
    const box = made.svg.getBoundingClientRect();
    const place = (event.clientX - box.left) * (made.width / box.width);
    let best = 0;
    at.forEach((value, index) => {
      if (Math.abs(made.sx(value) - place) < Math.abs(made.sx(at[best]) - place)) best = index;
    });
    cross.setAttribute("x1", made.sx(at[best]));
    cross.setAttribute("x2", made.sx(at[best]));
    cross.setAttribute("visibility", "visible");
    const where = figure.x.names.length ? figure.x.names[best] : `${figure.x.text} ${short(at[best], 4)}`;
    const said = lines.map((line) => `${line.name} ${short(line.y[best])}${line.low ? interval(line.low[best], line.high[best]) : ""}`);
    readout.textContent = `${where}: ${said.join(" · ")}`;
  }

  if (byHead) watch(render);
  return { render, table: () => curvesTable(figure) };
}

// Sticks of the chosen head along the axis, those with a place on it.
function sticksOf(figure) {
  const { shape } = figure.marks;
  if (!inside(shape, chosen.layer, chosen.head)) return [];
  const count = shape[2];
  const [at, heights] = [numbers(figure.marks.at), numbers(figure.marks.heights)];
  const start = (chosen.layer * shape[1] + chosen.head) * count;
  const out = [];
  for (let i = 0; i < count; i++) out.push({ at: at[chosen.layer * count + i], height: heights[start + i] });
  return out.filter((stick) => Number.isFinite(stick.at) && Number.isFinite(stick.height));
}

// Half the plot for the tallest; a stick of nothing, or less, still shows where it stands.
function sticks(made, found, x) {
  const tallest = Math.max(...found.map((stick) => stick.height), 1e-9);
  for (const { at, height } of found) {
    if (at < x.low * (1 - 1e-6) || at > x.high * (1 + 1e-6)) continue;
    const tall = Math.max((made.plot.bottom - made.plot.top) * 0.5 * Math.max(height / tallest, 0), 3);
    made.svg.append(draw("line", { class: "stick", x1: made.sx(at), x2: made.sx(at), y1: made.plot.bottom, y2: made.plot.bottom - tall }));
  }
}

function tallestText(figure) {
  const found = sticksOf(figure);
  if (!found.length) return ` · ${figure.marks.label}: none in this range`;
  const best = found.reduce((one, two) => (two.height > one.height ? two : one));
  return ` · tallest stick: ${short(best.height)} of ${figure.marks.what.replace("share of ", "")} at ${short(best.at)}`;
}

function stickItem(marks) {
  const svg = draw("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" });
  [6, 13, 20].forEach((x, index) => svg.append(draw("line", { class: "stick", x1: x, x2: x, y1: 12, y2: [6, 1, 8][index] })));
  return make("li", {}, svg, `${marks.label}: ${marks.what}`);
}

function curvesTable(figure) {
  const table = curveTable(figure, linesOf(figure, chosen.layer, chosen.head));
  if (!figure.marks) return table;
  const rows = sticksOf(figure).map((stick) => [short(stick.at, 4), short(stick.height)]);
  return make("div", {}, table, tableOf([figure.marks.label, figure.marks.what], rows));
}

function colourOf(figure, line, index) {
  return figure.categorical ? page.colours.categories[index % page.colours.categories.length] : lineColour(index, line.role);
}

// Small multiples of one figure share their vertical axis, or they could not be compared.
function sharedLimits(figure) {
  if (!figure.group) return null;
  const alike = Object.values(page.figures).filter((other) => other.group === figure.group && other.lines);
  const all = alike.flatMap((other) => other.lines.flatMap((line) => [line.values, line.low, line.high].map(numbers).filter(Boolean)));
  const ends = all.map(extent).filter(Boolean);
  return ends.flat();
}

function strokes(made, at, line, index, y) {
  const colour = line.colour;
  const ok = (value) => Number.isFinite(value) && (!y.log || value > 0);
  if (line.low && line.role === "value") {
    for (const [start, end] of runs(line.low.length, (i) => ok(line.low[i]) && ok(line.high[i]))) {
      const upper = [];
      const lower = [];
      for (let i = start; i < end; i++) {
        upper.push(`${made.sx(at[i])},${made.sy(line.high[i])}`);
        lower.unshift(`${made.sx(at[i])},${made.sy(line.low[i])}`);
      }
      if (end - start > 1) made.svg.append(draw("polygon", { class: "band", points: [...upper, ...lower].join(" "), fill: colour }));
      else made.svg.append(whisker(made.sx(at[start]), made.sy(line.low[start]), made.sy(line.high[start]), colour));
    }
  }
  for (const [start, end] of runs(line.y.length, (i) => ok(line.y[i]))) {
    const points = [];
    for (let i = start; i < end; i++) points.push(`${made.sx(at[i])},${made.sy(line.y[i])}`);
    const path = draw("polyline", { class: `line ${line.role}`, points: points.join(" ") });
    path.style.stroke = colour;
    made.svg.append(path);
    if (line.role === "value" && (end - start === 1 || line.y.length <= 24)) {
      for (let i = start; i < end; i++) made.svg.append(symbol(index, made.sx(at[i]), made.sy(line.y[i]), colour));
    }
  }
}

function dots(made, at, line, index, count, x) {
  const colour = line.colour;
  const step = Math.min(12, (made.plot.right - made.plot.left) / x.names.length / (count + 1));
  at.forEach((value, i) => {
    if (!Number.isFinite(line.y[i])) return;
    const place = made.sx(value) + (index - (count - 1) / 2) * step;
    if (line.low && Number.isFinite(line.low[i])) made.svg.append(whisker(place, made.sy(line.low[i]), made.sy(line.high[i]), colour));
    made.svg.append(line.role === "value" ? symbol(index, place, made.sy(line.y[i]), colour) : dash(place, made.sy(line.y[i]), colour));
  });
}

function runs(size, ok) {
  const out = [];
  let start = -1;
  for (let i = 0; i <= size; i++) {
    const good = i < size && ok(i);
    if (good && start < 0) start = i;
    if (!good && start >= 0) {
      out.push([start, i]);
      start = -1;
    }
  }
  return out;
}

function whisker(x, low, high, colour) {
  const path = draw("path", { class: "whisker", d: `M${x} ${low}V${high}M${x - 3} ${low}h6M${x - 3} ${high}h6` });
  path.style.stroke = colour;
  return path;
}

function dash(x, y, colour) {
  const path = draw("path", { class: "whisker", d: `M${x - 6} ${y}h12` });
  path.style.stroke = colour;
  return path;
}

// Lines differ by mark as well as by colour.
function symbol(index, x, y, colour) {
  const marks = [
    () => draw("circle", { cx: x, cy: y, r: 3.4 }),
    () => draw("rect", { x: x - 3, y: y - 3, width: 6, height: 6 }),
    () => draw("path", { d: `M${x} ${y - 4.2}l4.2 7.4h-8.4z` }),
    () => draw("path", { d: `M${x} ${y - 4.4}l4.4 4.4-4.4 4.4-4.4-4.4z` }),
  ];
  const mark = marks[index % marks.length]();
  mark.style.fill = colour;
  return mark;
}

function legendItem(figure, line, index) {
  const colour = colourOf(figure, line, index);
  const svg = draw("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" });
  const stroke = draw("line", { class: `line ${line.role}`, x1: 1, x2: 25, y1: 6, y2: 6 });
  stroke.style.stroke = colour;
  svg.append(stroke);
  if (line.role === "value") svg.append(symbol(index, 13, 6, colour));
  return make("li", {}, svg, line.name);
}
