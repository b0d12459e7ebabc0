// Rows of the chosen head: queries downwards, bins of keys across, coloured by the square root of the weight so that small ones show.
const MOST_NAMED = 5;
const MOST_TOKENS = 4;

function headRows(name, figure, holder) {
  const [, heads, numQueries, numBins] = figure.shape;
  const state = { example: false, query: numQueries - 1, bin: null };
  const [queries, first, last, offset] = ["queries", "first", "last", "offset"].map((key) => numbers(figure[key]));
  if (figure.example !== null) holder.append(exampleChoice());
  const plot = make("div");
  const legend = make("div", { class: "ramp" });
  const readout = make("p", { class: "readout" });
  const strongest = make("ol", { class: "strongest" });
  holder.append(plot, legend, readout, strongest);
  let layout = null;

  function exampleChoice() {
    const select = make("select", { "aria-label": "Rows of which texts" });
    select.append(make("option", { value: 0 }, "mean over texts"));
    select.append(make("option", { value: 1 }, `one text (sequence ${figure.sequence})${figure.tokens.length ? ", with its tokens" : ""}`));
    select.addEventListener("change", () => {
      state.example = select.value === "1";
      render();
    });
    return make("div", { class: "choices" }, select);
  }

  function rows() {
    const size = numQueries * numBins;
    if (!inside(figure.shape, chosen.layer, chosen.head)) return new Float32Array(size).fill(NaN);
    const start = (chosen.layer * heads + chosen.head) * size;
    return numbers(state.example ? figure.example : figure.values).subarray(start, start + size);
  }

  function render() {
    const values = rows();
    if (!values.some(Number.isFinite)) {
      layout = null;
      legend.replaceChildren();
      strongest.replaceChildren();
      readout.textContent = "";
      empty(plot, `Layer ${chosen.layer}, head ${chosen.head} has no rows here.`);
      return;
    }
    const width = Math.max(plot.clientWidth, 220);
    const left = Math.max(...[...queries].map((query) => widthOf(query))) + 10;
    const cell = (width - left - 2) / numBins;
    const tall = 17;
    const top = 2 * LINE + 8;
    layout = { left, top, cell, tall };
    const bottom = top + tall * numQueries;
    const svg = draw("svg", {
      viewBox: `0 0 ${width} ${bottom + 3}`,
      class: "strip",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "rows of attention",
      "aria-label": `${figure.title}. ${numQueries} queries, ${numBins} bins of keys. Arrow keys choose a query and a bin.`,
    });
    const hatch = `hatch-${patterns++}`;
    const place = { x: left, y: top, width: cell * numBins, height: tall * numQueries };
    svg.append(draw("defs", {}, hatching(hatch)), draw("rect", { ...place, fill: `url(#${hatch})` }));
    svg.append(draw("image", { class: "pixels", href: rowPixels(values, numQueries, numBins), ...place, preserveAspectRatio: "none" }));
    labels(svg, width);
    layout.marks = draw("g");
    svg.append(layout.marks);
    plot.replaceChildren(svg);
    rampOfRoots(legend);
    listen(svg);
    mark();
  }

  // The kinds of bin from left to right, so that no column needs a label of its own.
  function kindsOfBins() {
    const near = offset.findIndex(Number.isFinite);
    if (near < 0) return [{ from: 0, to: numBins, text: "key →" }];
    const wide = first.findIndex((key, bin) => last[bin] > key || bin === 8);
    return [
      { from: 0, to: wide, text: `keys 0–${wide - 1}`, small: `0–${wide - 1}` },
      { from: wide, to: near, text: `keys ${short(first[wide], 6)}–${short(last[near - 1], 6)}`, small: "later keys" },
      { from: near, to: numBins, text: `i${signed(offset[near])} … i${signed(offset[numBins - 1])}`, small: "near i" },
    ];
  }

  function labels(svg, width) {
    const { left, top, cell, tall } = layout;
    svg.append(draw("text", { class: "title", x: 0, y: 11 }, cut("query i ↓  key →", width)));
    for (const { from, to, text, small } of kindsOfBins()) {
      const span = (to - from) * cell;
      const fitting = widthOf(text) <= span - 4 ? text : small && widthOf(small) <= span - 4 ? small : "";
      svg.append(draw("text", { x: left + from * cell + span / 2, y: top - 7, "text-anchor": "middle" }, fitting));
      if (from) svg.append(draw("line", { class: "divide", x1: left + from * cell, x2: left + from * cell, y1: top - 4, y2: top + tall * numQueries }));
    }
    queries.forEach((query, row) => svg.append(draw("text", { x: left - 6, y: top + (row + 0.5) * tall + 4, "text-anchor": "end" }, query)));
  }

  function mark() {
    if (!layout) return;
    const { left, top, cell, tall, marks } = layout;
    marks.replaceChildren(draw("rect", { class: "hover", x: left - 1, y: top + state.query * tall, width: cell * numBins + 2, height: tall }));
    const where = `Layer ${chosen.layer}, head ${chosen.head} · query ${queries[state.query]}${token(queries[state.query])}`;
    const values = rows();
    if (state.bin === null) readout.textContent = where;
    else {
      marks.append(draw("rect", { class: "chosen", x: left + state.bin * cell - 1, y: top + state.query * tall - 1, width: cell + 2, height: tall + 2 }));
      const value = values[state.query * numBins + state.bin];
      readout.textContent = `${where} → ${binText(state.query, state.bin)}: ${Number.isFinite(value) ? `weight ${short(value, 2)}` : "cannot be seen"}`;
    }
    strongestOf(values);
  }

  // Where most of the chosen row goes, in words: with the tokens themselves where one text is shown.
  function strongestOf(values) {
    const row = [...values.subarray(state.query * numBins, (state.query + 1) * numBins)];
    const order = row.map((value, bin) => bin).filter((bin) => row[bin] > 0.005);
    order.sort((one, two) => row[two] - row[one]);
    strongest.replaceChildren(...order.slice(0, MOST_NAMED).map((bin) => make("li", {}, make("b", {}, short(row[bin], 2)), ` ${binText(state.query, bin)}`)));
    strongest.setAttribute("aria-label", `Most of the row of query ${queries[state.query]}`);
  }

  function binText(row, bin) {
    if (Number.isFinite(offset[bin])) {
      const key = queries[row] - offset[bin];
      return `key ${key}${token(key)} (i${signed(offset[bin])})`;
    }
    if (first[bin] === last[bin]) return `key ${first[bin]}${token(first[bin])}`;
    if (!state.example || !figure.tokens.length) return `keys ${first[bin]}–${last[bin]}`;
    const known = figure.tokens.slice(first[bin], last[bin] + 1);
    const more = last[bin] - first[bin] + 1 > MOST_TOKENS ? " …" : "";
    return `keys ${first[bin]}–${last[bin]}${known.length ? ` “${known.slice(0, MOST_TOKENS).join("” “")}”${more}` : ""}`;
  }

  function token(key) {
    return state.example && figure.tokens[key] !== undefined ? ` “${figure.tokens[key]}”` : "";
  }

  function at(event, svg) {
    const box = svg.getBoundingClientRect();
    const factor = svg.viewBox.baseVal.width / box.width;
    const bin = Math.floor(((event.clientX - box.left) * factor - layout.left) / layout.cell);
    const query = Math.floor(((event.clientY - box.top) * factor - layout.top) / layout.tall);
    return query >= 0 && bin >= 0 && query < numQueries && bin < numBins ? [query, bin] : null;
  }

  function listen(svg) {
    svg.addEventListener("pointermove", (event) => {
      const found = at(event, svg);
      state.bin = found ? found[1] : null;
      if (found) state.query = found[0];
      mark();
    });
    svg.addEventListener("pointerleave", () => {
      state.bin = null;
      mark();
    });
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      state.query = Math.min(Math.max(state.query + step[0], 0), numQueries - 1);
      state.bin = state.bin === null ? 0 : Math.min(Math.max(state.bin + step[1], 0), numBins - 1);
      mark();
      document.getElementById("said").textContent = readout.textContent;
    });
  }

  watch(render);
  return { render, table: () => rowTable(figure, rows(), queries) };
}

function signed(value) {
  return value === 0 ? "" : value > 0 ? `−${value}` : `+${-value}`;
}

function rowPixels(values, numQueries, numBins) {
  const field = { palette: "sequential", limits: [0, 1] };
  return painted(numBins, numQueries, values, (value) => cellColour(field, Math.sqrt(value)));
}

function rampOfRoots(legend) {
  const field = { palette: "sequential", limits: [0, 1] };
  const bar = draw("svg", { class: "bar", viewBox: "0 0 64 1", preserveAspectRatio: "none", "aria-hidden": "true" });
  for (let i = 0; i < 64; i++) bar.append(draw("rect", { x: i, y: 0, width: 1.5, height: 1, fill: cellColour(field, Math.sqrt(i / 63)) }));
  legend.replaceChildren(make("span", {}, "weight 0", bar, "1"));
}

function rowTable(figure, values, queries) {
  const columns = ["key", ...[...queries].map((query) => `query ${query}`)];
  const text = (value) => (Number.isFinite(value) ? short(value, 2) : "–");
  return tableOf(columns, figure.bins.map((bin, index) => [bin, ...[...queries].map((_, row) => text(values[row * figure.bins.length + index]))]));
}
