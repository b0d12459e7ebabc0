// The same numbers as tables, for those who cannot see the pictures and those who want the digits; made when opened.
function tableOf(columns, rows) {
  const head = make("tr", {}, ...columns.map((name) => make("th", { scope: "col" }, name)));
  const body = make("tbody");
  for (const [first, ...rest] of rows) {
    body.append(make("tr", {}, make("th", { scope: "row" }, first), ...rest.map((cell) => make("td", { class: "number" }, cell))));
  }
  return make("table", {}, make("thead", {}, head), body);
}

function headTable(field) {
  const [layers, heads] = field.shape;
  const values = numbers(field.values);
  const text = (value) => (field.palette === "categories" ? (Number.isFinite(value) ? field.names[Math.round(value)] : "unknown") : Number.isFinite(value) ? short(value) : "–");
  const columns = ["layer", ...Array.from({ length: heads }, (_, head) => `head ${head}`)];
  const rows = Array.from({ length: layers }, (_, layer) => [layer, ...Array.from({ length: heads }, (_, head) => text(values[layer * heads + head]))]);
  return tableOf(columns, rows);
}

function curveTable(figure, lines) {
  const at = numbers(figure.at);
  const columns = [figure.x.text, ...lines.flatMap((line) => (line.low ? [line.name, "95 % interval"] : [line.name]))];
  const rows = Array.from(at, (value, i) => [
    figure.x.names.length ? figure.x.names[i] : short(value, 5),
    ...lines.flatMap((line) => (line.low ? [short(line.y[i]), interval(line.low[i], line.high[i]).trim()] : [short(line.y[i])])),
  ]);
  return tableOf(columns, rows);
}

function scatterTable(figure) {
  const [xs, ys] = [numbers(figure.x.values), numbers(figure.y.values)];
  const heads = figure.x.shape[1];
  return tableOf(["layer.head", figure.x.label, figure.y.label], Array.from(xs, (x, i) => [`${Math.floor(i / heads)}.${i % heads}`, short(x), short(ys[i])]));
}

function intervalTable(figure) {
  return tableOf([figure.x.text, "value", "95 % interval"], figure.rows.map((row) => [row.label, row.value === null ? row.reason || "no value" : short(row.value), interval(row.low ?? NaN, row.high ?? NaN).trim()]));
}
