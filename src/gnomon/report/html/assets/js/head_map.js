// A map of all heads: layers downwards, heads across. One pixel per head, enlarged; what has no value shows the hatching behind.
let patterns = 0;

function headMap(name, figure, holder) {
  const state = { field: 0, hover: null };
  const select = figure.fields.length > 1 ? fieldChoice(figure, state, () => render()) : null;
  const plot = make("div");
  const legend = make("div", { class: "ramp" });
  const readout = make("p", { class: "readout" });
  if (select) holder.append(select);
  holder.append(plot, legend, readout);
  let layout = null;

  function render() {
    const field = figure.fields[state.field];
    const [layers, heads] = field.shape;
    const width = Math.max(plot.clientWidth, 220);
    const left = Math.max(widthOf(layers - 1), 14) + 10;
    const cell = Math.min((width - left - 4) / heads, 44);
    const tall = Math.max(Math.min(cell, 26, 560 / layers), 420 / layers > 4 ? 4 : 3);
    const top = LINE + 20;
    layout = { left, top, cell, tall, layers, heads };
    const bottom = top + tall * layers;
    const svg = draw("svg", {
      viewBox: `0 0 ${width} ${bottom + 4}`,
      class: "map",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "map of heads",
      "aria-label": `${figure.title}: ${field.label}. ${layers} layers, ${heads} heads. Arrow keys choose a head.`,
    });
    const hatch = `hatch-${patterns++}`;
    svg.append(draw("defs", {}, hatching(hatch)));
    svg.append(draw("rect", { x: left, y: top, width: cell * heads, height: tall * layers, fill: `url(#${hatch})` }));
    svg.append(
      draw("image", { class: "pixels", href: pixels(field), x: left, y: top, width: cell * heads, height: tall * layers, preserveAspectRatio: "none" }),
    );
    if (cell > 7 && tall > 7) svg.append(cellLines(layout));
    mapLabels(svg, layout, width);
    const marks = draw("g");
    svg.append(marks);
    layout.marks = marks;
    plot.replaceChildren(svg);
    rampOf(field, legend);
    mark();
    listen(svg);
  }

  function mark() {
    if (!layout) return;
    const { marks, left, top, cell, tall, layers, heads } = layout;
    marks.replaceChildren();
    const box = (layer, head, kind) =>
      draw("rect", { class: kind, x: left + head * cell - 1, y: top + layer * tall - 1, width: cell + 2, height: tall + 2 });
    if (inside([layers, heads], chosen.layer, chosen.head)) {
      marks.append(box(chosen.layer, chosen.head, "chosen-under"), box(chosen.layer, chosen.head, "chosen"));
    }
    if (state.hover) marks.append(box(...state.hover, "hover"));
    const [layer, head] = state.hover || [chosen.layer, chosen.head];
    const field = figure.fields[state.field];
    readout.textContent = `Layer ${layer}, head ${head} · ${field.label}: ${valueText(field, layer, head)}`;
  }

  function at(event, svg) {
    const box = svg.getBoundingClientRect();
    const factor = svg.viewBox.baseVal.width / box.width;
    const head = Math.floor(((event.clientX - box.left) * factor - layout.left) / layout.cell);
    const layer = Math.floor(((event.clientY - box.top) * factor - layout.top) / layout.tall);
    return head >= 0 && layer >= 0 && inside([layout.layers, layout.heads], layer, head) ? [layer, head] : null;
  }

  function listen(svg) {
    svg.addEventListener("click", (event) => {
      const found = at(event, svg);
      if (found) choose(...found);
    });
    svg.addEventListener("pointermove", (event) => {
      state.hover = at(event, svg);
      mark();
    });
    svg.addEventListener("pointerleave", () => {
      state.hover = null;
      mark();
    });
    svg.addEventListener("keydown", (event) => {
      const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
      const ends = { Home: [chosen.layer, 0], End: [chosen.layer, layout.heads - 1], PageUp: [0, chosen.head], PageDown: [layout.layers - 1, chosen.head] };
      const step = steps[event.key];
      const next = step ? [chosen.layer + step[0], chosen.head + step[1]] : ends[event.key];
      if (!next || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      choose(Math.min(Math.max(next[0], 0), layout.layers - 1), Math.min(Math.max(next[1], 0), layout.heads - 1));
    });
  }

  watch(mark);
  return { render, table: () => headTable(figure.fields[state.field]) };
}

function fieldChoice(figure, state, act) {
  const select = make("select", { "aria-label": `What ${figure.title} shows` });
  figure.fields.forEach((field, index) => select.append(make("option", { value: index }, withUnitsLabel(field))));
  select.addEventListener("change", () => {
    state.field = Number(select.value);
    act();
  });
  return make("div", { class: "choices" }, select);
}

function withUnitsLabel(field) {
  return field.units ? `${field.label} (${field.units})` : field.label;
}

function pixels(field) {
  const [layers, heads] = field.shape;
  return painted(heads, layers, numbers(field.values), (value) => cellColour(field, value));
}

// A picture of one pixel per value; no colour leaves it clear.
function painted(width, height, values, colourFor) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  values.forEach((value, index) => {
    const colour = colourFor(value);
    if (!colour) return;
    for (let part = 0; part < 3; part++) image.data[4 * index + part] = parseInt(colour.slice(1 + 2 * part, 3 + 2 * part), 16);
    image.data[4 * index + 3] = 255;
  });
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

function hatching(id) {
  const missing = colours().missing;
  return draw(
    "pattern",
    { id, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    draw("line", { x1: 0, y1: 0, x2: 0, y2: 5, stroke: missing, "stroke-width": 3 }),
  );
}

function cellLines({ left, top, cell, tall, layers, heads }) {
  let path = "";
  for (let head = 0; head <= heads; head++) path += `M${left + head * cell} ${top}v${tall * layers}`;
  for (let layer = 0; layer <= layers; layer++) path += `M${left} ${top + layer * tall}h${cell * heads}`;
  return draw("path", { class: "cells", d: path });
}

function mapLabels(svg, { left, top, cell, tall, layers, heads }, width) {
  const everyHead = stepFor(widthOf(heads - 1) + 8, cell);
  for (let head = 0; head < heads; head += everyHead) {
    svg.append(draw("text", { x: left + (head + 0.5) * cell, y: top - 5, "text-anchor": "middle" }, head));
  }
  const everyLayer = stepFor(LINE, tall);
  for (let layer = 0; layer < layers; layer += everyLayer) {
    svg.append(draw("text", { x: left - 6, y: top + (layer + 0.5) * tall + 4, "text-anchor": "end" }, layer));
  }
  svg.append(draw("text", { class: "title", x: 0, y: 10 }, cut("layer ↓  head →", width)));
}

function stepFor(room, cell) {
  return [1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100].find((step) => step * cell >= room) || 200;
}

function rampOf(field, legend) {
  legend.replaceChildren();
  if (field.palette === "categories") {
    field.names.forEach((name, index) => legend.append(make("span", {}, swatch(cellColour(field, index)), name)));
  } else {
    const table = colours()[field.palette];
    const bar = draw("svg", { class: "bar", viewBox: `0 0 ${table.length} 1`, preserveAspectRatio: "none", "aria-hidden": "true" });
    table.forEach((colour, index) => bar.append(draw("rect", { x: index, y: 0, width: 1.5, height: 1, fill: colour })));
    const [least, most] = extent(numbers(field.values)) || field.limits;
    const below = (least < field.limits[0] ? "≤ " : "") + short(field.limits[0]);
    const above = (most > field.limits[1] * (1 + 1e-6) ? "≥ " : "") + withUnits(short(field.limits[1]), field.units);
    legend.append(make("span", {}, below, bar, above));
  }
  if (numbers(field.values).some((value) => !Number.isFinite(value))) {
    const box = draw("svg", { class: "swatch", viewBox: "0 0 14 14", "aria-hidden": "true" });
    const id = `hatch-${patterns++}`;
    box.append(draw("defs", {}, hatching(id)), draw("rect", { width: 14, height: 14, fill: `url(#${id})` }));
    legend.append(make("span", {}, box, "no value"));
  }
}

function swatch(colour) {
  return draw("svg", { class: "swatch", viewBox: "0 0 14 14", "aria-hidden": "true" }, draw("rect", { width: 14, height: 14, fill: colour }));
}
