// Drawing, redrawing, and what the reader can do to the whole page.
const drawn = [];
const kinds = { "head-map": headMap, "head-curves": curves, "head-rows": headRows, curves, "head-scatter": scatter, intervals };

function drawAll() {
  setLineColours();
  for (const figure of drawn) figure.render();
}

for (const holder of document.querySelectorAll("[data-figure]")) {
  const name = holder.dataset.figure;
  const made = kinds[page.figures[name].kind](name, page.figures[name], holder.querySelector(".drawing"));
  drawn.push(made);
  const details = holder.querySelector("details");
  const fill = () => details.open && details.querySelector(".scroll").replaceChildren(made.table());
  details.addEventListener("toggle", fill);
  watch(fill);
}

const card = document.getElementById("card");
const refreshCard = card ? headCard(card) : null;

const chooser = document.getElementById("chooser");
const [numLayers, numHeads] = largestShape();
if (numLayers && numHeads) {
  chooser.hidden = false;
  const [layer, head] = [document.getElementById("layer"), document.getElementById("head")];
  layer.max = numLayers - 1;
  head.max = numHeads - 1;
  chooser.addEventListener("input", () => layer.value !== "" && head.value !== "" && choose(Number(layer.value), Number(head.value)));
  chooser.addEventListener("submit", (event) => event.preventDefault());
}

function goTo(id, focus = false) {
  const place = document.getElementById(id);
  if (!place) return;
  place.scrollIntoView();
  if (focus) place.focus({ preventScroll: true });
}

for (const link of document.querySelectorAll("a[data-target]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const target = link.dataset.target;
    if (target !== "main") setAddress({ section: target });
    goTo(target, target === "main");
  });
}

const button = document.getElementById("theme");
const words = { "": "as the system", light: "light", dark: "dark" };

function remembered() {
  try {
    return localStorage.getItem("gnomon-theme") || "";
  } catch {
    return "";
  }
}

function setTheme(value) {
  if (value) root.dataset.theme = value;
  else delete root.dataset.theme;
  button.setAttribute("aria-label", `Colours: ${words[value]}. Change.`);
  button.textContent = { "": "◐", light: "○", dark: "●" }[value];
}

button.addEventListener("click", () => {
  const order = ["", "light", "dark"];
  const next = order[(order.indexOf(root.dataset.theme || "") + 1) % 3];
  setTheme(next);
  try {
    localStorage.setItem("gnomon-theme", next);
  } catch {
    // A page opened from disk may not be allowed to remember; it then follows the system next time.
  }
  drawAll();
});

setTheme(words[remembered()] ? remembered() : "");
choose(...firstChoice(), { keep: Boolean(address().head) });
drawAll();
ready = true;
if (refreshCard) refreshCard();
if (address().section) goTo(address().section);

window.addEventListener("hashchange", () => {
  const { head, section } = address();
  if (head) choose(...head.split(".").map(Number), { keep: false });
  if (section) goTo(section);
});
system.addEventListener("change", drawAll);
window.addEventListener("beforeprint", () => {
  printing = true;
  root.classList.add("printing");
  drawAll();
});
window.addEventListener("afterprint", () => {
  printing = false;
  root.classList.remove("printing");
  drawAll();
});

let lastWidth = document.body.clientWidth;
let waiting = 0;
new ResizeObserver(() => {
  if (document.body.clientWidth === lastWidth) return;
  lastWidth = document.body.clientWidth;
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(drawAll);
}).observe(document.body);
