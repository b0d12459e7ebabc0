// Numbers and elements. Every text goes in as text; nothing here parses markup.
const page = JSON.parse(document.getElementById("data").textContent);
const opened = new Map();

function bytes(text) {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out.buffer;
}

function numbers(index) {
  if (index === null || index === undefined) return null;
  if (!opened.has(index)) {
    const kept = page.arrays[index];
    if (kept.type === "f4") opened.set(index, new Float32Array(bytes(kept.data)));
    else if (kept.type === "u1") opened.set(index, Float32Array.from(new Uint8Array(bytes(kept.data)), (code) => (code === 255 ? NaN : (code / 254) ** 2)));
    else {
      const codes = new Uint16Array(bytes(kept.data));
      const step = (kept.high - kept.low) / 65534;
      opened.set(index, Float32Array.from(codes, (code) => (code === 65535 ? NaN : kept.low + code * step)));
    }
  }
  return opened.get(index);
}

function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) element.setAttribute(name, value);
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

function short(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "no value";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e5 || size < 1e-4 ? value.toExponential(digits - 1).replace("e+", "e") : String(Number(value.toPrecision(digits)));
  return text.replaceAll("-", "−");
}

function interval(low, high) {
  return Number.isFinite(low) && Number.isFinite(high) ? ` [${short(low)}, ${short(high)}]` : "";
}

function withUnits(text, units) {
  return units && text !== "no value" ? `${text} ${units}` : text;
}
