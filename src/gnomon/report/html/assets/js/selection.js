// The chosen head: one for the whole page, kept in the address, so that a link shows what its sender saw.
const chosen = { layer: 0, head: 0 };
const watchers = [];
let ready = false;

function watch(act) {
  watchers.push(act);
}

function largestShape() {
  let layers = 0;
  let heads = 0;
  for (const figure of Object.values(page.figures)) {
    for (const field of figure.fields || []) {
      layers = Math.max(layers, field.shape[0]);
      heads = Math.max(heads, field.shape[1]);
    }
    if (figure.kind === "head-rows") [layers, heads] = [Math.max(layers, figure.shape[0]), Math.max(heads, figure.shape[1])];
    for (const line of figure.kind === "head-curves" ? figure.lines : []) {
      layers = Math.max(layers, line.shape[0]);
      if (line.shape.length === 3) heads = Math.max(heads, line.shape[1]);
    }
  }
  return [layers, heads];
}

function choose(layer, head, { keep = true } = {}) {
  const [layers, heads] = largestShape();
  if (!layers || !heads || !Number.isFinite(layer) || !Number.isFinite(head)) return;
  chosen.layer = Math.min(Math.max(Math.round(layer), 0), layers - 1);
  chosen.head = Math.min(Math.max(Math.round(head), 0), heads - 1);
  if (keep) setAddress({ head: `${chosen.layer}.${chosen.head}` });
  document.getElementById("layer").value = chosen.layer;
  document.getElementById("head").value = chosen.head;
  if (!ready) return;
  for (const act of watchers) act(chosen.layer, chosen.head);
  document.getElementById("said").textContent = spoken();
}

function address() {
  const out = { section: "", head: "" };
  for (const part of decodeURIComponent(location.hash.slice(1)).split("&")) {
    if (/^head=\d{1,4}\.\d{1,4}$/.test(part)) out.head = part.slice(5);
    else if (/^[a-z]+$/.test(part)) out.section = part;
  }
  return out;
}

function setAddress(change) {
  const now = { ...address(), ...change };
  const hash = [now.section, now.head && `head=${now.head}`].filter(Boolean).join("&");
  if (location.hash.slice(1) !== hash) history.replaceState(null, "", `#${hash}`);
}

function firstChoice() {
  const { head } = address();
  if (head) return head.split(".").map(Number);
  const map = Object.values(page.figures).find((figure) => figure.kind === "head-map");
  if (!map) return [0, 0];
  const field = map.fields[0];
  const values = numbers(field.values);
  let best = 0;
  values.forEach((value, index) => {
    if (value > values[best] || !Number.isFinite(values[best])) best = index;
  });
  return [Math.floor(best / field.shape[1]), best % field.shape[1]];
}

function spoken() {
  const map = Object.values(page.figures).find((figure) => figure.kind === "head-map");
  const where = `Layer ${chosen.layer}, head ${chosen.head}`;
  return map ? `${where}: ${valueText(map.fields[0], chosen.layer, chosen.head)}` : where;
}

function inside(shape, layer, head) {
  return layer < shape[0] && head < shape[1];
}

function valueText(field, layer, head) {
  if (!inside(field.shape, layer, head)) return "not in this model";
  const index = layer * field.shape[1] + head;
  const value = numbers(field.values)[index];
  if (field.palette === "categories") return Number.isFinite(value) ? field.names[Math.round(value)] : "unknown";
  const [low, high] = [numbers(field.low), numbers(field.high)];
  return withUnits(short(value), field.units) + (low && Number.isFinite(value) ? interval(low[index], high[index]) : "");
}
