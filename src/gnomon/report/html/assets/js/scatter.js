// Every head as a dot; a click chooses it everywhere.
function scatter(name, figure, holder) {
  const plot = make("div");
  const readout = make("p", { class: "readout" });
  holder.append(plot, readout);
  let made = null;
  let ring = null;

  const value = (field, layer, head) => numbers(field.values)[layer * field.shape[1] + head];

  function render() {
    const [xs, ys] = [numbers(figure.x.values), numbers(figure.y.values)];
    const described = (field, log) => ({ text: withUnitsLabel(field), log, names: [], low: null, high: null, whole: false });
    made = frame(plot, { x: axisOf(described(figure.x, figure.logX), xs, { pad: 0.04 }), y: axisOf(described(figure.y, figure.logY), ys, { pad: 0.04 }), height: 260 });
    const [layers, heads] = figure.x.shape;
    const depth = { palette: "sequential", limits: [-0.25 * layers, layers] };
    xs.forEach((x, index) => {
      if (!Number.isFinite(x) || !Number.isFinite(ys[index])) return;
      const colour = cellColour(depth, Math.floor(index / heads));
      made.svg.append(draw("circle", { class: "dot", cx: made.sx(x), cy: made.sy(ys[index]), r: 3, fill: colour }));
    });
    ring = draw("circle", { class: "chosen", r: 6, visibility: "hidden" });
    made.svg.append(ring);
    made.svg.addEventListener("click", (event) => {
      const found = nearest(event, xs, ys);
      if (found >= 0) choose(Math.floor(found / heads), found % heads);
    });
    plot.replaceChildren(made.svg);
    mark();
  }

  function nearest(event, xs, ys) {
    const box = made.svg.getBoundingClientRect();
    const factor = made.width / box.width;
    const [px, py] = [(event.clientX - box.left) * factor, (event.clientY - box.top) * factor];
    let best = -1;
    let least = 20 ** 2;
    xs.forEach((x, index) => {
      const far = (made.sx(x) - px) ** 2 + (made.sy(ys[index]) - py) ** 2;
      if (far < least) [best, least] = [index, far];
    });
    return best;
  }

  function mark() {
    if (!made) return;
    const known = inside(figure.x.shape, chosen.layer, chosen.head);
    const [x, y] = known ? [value(figure.x, chosen.layer, chosen.head), value(figure.y, chosen.layer, chosen.head)] : [NaN, NaN];
    const shown = Number.isFinite(x) && Number.isFinite(y);
    ring.setAttribute("visibility", shown ? "visible" : "hidden");
    if (shown) {
      ring.setAttribute("cx", made.sx(x));
      ring.setAttribute("cy", made.sy(y));
    }
    const parts = [figure.x, figure.y].map((field) => `${field.label}: ${valueText(field, chosen.layer, chosen.head)}`);
    readout.textContent = `Layer ${chosen.layer}, head ${chosen.head} · ${parts.join(" · ")}. Darker on a light page, lighter on a dark one: deeper layers.`;
  }

  watch(mark);
  return { render, table: () => scatterTable(figure) };
}
