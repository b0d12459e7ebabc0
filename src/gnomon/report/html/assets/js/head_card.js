// Everything the run says of the chosen head, with its place among all heads.
function headCard(holder) {
  const title = document.getElementById("card-title");
  const ordered = new Map();

  function rank(field, value) {
    const key = field.values;
    if (!ordered.has(key)) ordered.set(key, numbers(key).filter(Number.isFinite).sort());
    const all = ordered.get(key);
    let above = 0;
    for (let i = all.length - 1; i >= 0 && all[i] > value; i--) above++;
    return `${above + 1}\u00a0/\u00a0${all.length}`;
  }

  function render() {
    title.textContent = `Layer ${chosen.layer}, head ${chosen.head}`;
    const rows = [];
    for (const place of page.fields) {
      const field = page.figures[place.figure].fields[place.field];
      if (!inside(field.shape, chosen.layer, chosen.head)) continue;
      const value = numbers(field.values)[chosen.layer * field.shape[1] + chosen.head];
      const known = Number.isFinite(value) && field.palette !== "categories";
      rows.push([field.label, valueText(field, chosen.layer, chosen.head), known ? rank(field, value) : ""]);
    }
    const scroll = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Values of the chosen head" });
    scroll.append(tableOf(["quantity", "value [95 %]", "rank"], rows));
    holder.replaceChildren(scroll);
  }

  watch(render);
  return render;
}
