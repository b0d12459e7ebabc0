// A few numbers with their intervals, one below the other.
function intervals(name, figure, holder) {
  const plot = make("div");
  holder.append(plot);

  function render() {
    const known = figure.rows.filter((row) => row.value !== null);
    if (!known.length) {
      empty(plot, `No value here: ${figure.rows.map((row) => row.reason).find(Boolean) || "nothing was measured"}.`);
      return;
    }
    const width = Math.max(plot.clientWidth, 220);
    const longest = Math.max(...figure.rows.map((row) => widthOf(row.label)));
    const above = longest > width * 0.4;
    const left = above ? 4 : longest + 14;
    const tall = above ? 38 : 25;
    const top = 6;
    const bottom = top + tall * figure.rows.length;
    const values = known.flatMap((row) => [row.value, row.low ?? row.value, row.high ?? row.value]);
    if (figure.reference !== null) values.push(figure.reference);
    const x = axisOf(figure.x, groupValues(figure, values), { pad: 0.04 });
    const sx = scale(x.low, x.high, left + 6, width - 10, x.log, x.zero);
    const svg = draw("svg", { viewBox: `0 0 ${width} ${bottom + 2 * LINE + 14}`, role: "img", "aria-hidden": "true" });
    for (const { at, text } of xLabels(x, width - left - 16).shown) {
      svg.append(draw("line", { class: "grid", x1: sx(at), x2: sx(at), y1: top, y2: bottom }));
      svg.append(draw("text", { x: Math.min(Math.max(sx(at), widthOf(text) / 2), width - widthOf(text) / 2), y: bottom + 14, "text-anchor": "middle" }, text));
    }
    if (figure.reference !== null) {
      svg.append(draw("line", { class: "zero", x1: sx(figure.reference), x2: sx(figure.reference), y1: top, y2: bottom }));
    }
    figure.rows.forEach((row, index) => svg.append(intervalRow(row, index, { sx, top, tall, left, above, width })));
    svg.append(draw("line", { class: "axis", x1: left, x2: width, y1: bottom, y2: bottom }));
    svg.append(draw("text", { class: "title", x: width - 10, y: bottom + 14 + LINE, "text-anchor": "end" }, cut(figure.x.text, width)));
    plot.replaceChildren(svg);
  }

  return { render, table: () => intervalTable(figure) };
}

function intervalRow(row, index, { sx, top, tall, left, above, width }) {
  const y = top + tall * index + (above ? tall - 11 : tall / 2);
  const group = draw("g");
  group.append(draw("text", { class: "title", x: above ? 4 : left - 8, y: above ? y - 11 : y + 4, "text-anchor": above ? "start" : "end" }, cut(row.label, above ? width : left)));
  if (row.value === null) {
    group.append(draw("text", { x: left + 8, y: y + 4 }, cut(row.reason || "no value", width - left - 8)));
    return group;
  }
  const colour = lineColour(0, row.role);
  if (row.low !== null && row.high !== null) {
    const bar = draw("path", { class: "whisker", d: `M${sx(row.low)} ${y}H${sx(row.high)}M${sx(row.low)} ${y - 4}v8M${sx(row.high)} ${y - 4}v8` });
    bar.style.stroke = colour;
    group.append(bar);
  }
  group.append(symbol(0, sx(row.value), y, colour));
  return group;
}

function groupValues(figure, values) {
  if (!figure.group) return values;
  const alike = Object.values(page.figures).filter((other) => other.group === figure.group && other.rows);
  return [...values, ...alike.flatMap((other) => other.rows.flatMap((row) => [row.value, row.low, row.high].filter((end) => end !== null)))];
}
