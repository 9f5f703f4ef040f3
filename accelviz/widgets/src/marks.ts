// SVG as text: the quickest way to draw a thousand marks again at each move of a slider.

// The same as in views.css.
const FONT = 'system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const SIGNS = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Text that may stand in an element or an attribute. */
export const safe = (text) => String(text).replace(/[&<>"']/g, (sign) => SIGNS[sign]);

const english = new Intl.NumberFormat("en-US");

/** A number as people write it: 1,358. */
export const number = (value) => english.format(value);

/** "1 nonzero", "1,358 nonzeros". */
export const count = (value, thing, plural = `${thing}s`) =>
  `${number(value)} ${value === 1 ? thing : plural}`;

/** "warp 3", "warps 0 to 5". */
export const span = (thing, first, last) =>
  first === last ? `${thing} ${number(first)}` : `${thing}s ${number(first)} to ${number(last)}`;

const short = (value) => (typeof value === "number" ? Math.round(value * 100) / 100 : value);

/** One element; attributes that are undefined, null or false are left out. */
export function mark(tag, attributes = {}, inner = "") {
  let text = `<${tag}`;
  for (const name in attributes) {
    const value = attributes[name];
    if (value !== undefined && value !== null && value !== false)
      text += ` ${name}="${safe(short(value))}"`;
  }
  return inner === "" ? `${text}/>` : `${text}>${inner}</${tag}>`;
}

export const rect = (x, y, width, height, attributes) =>
  mark("rect", { x, y, width: Math.max(width, 0), height: Math.max(height, 0), ...attributes });

export const path = (d, attributes) => mark("path", { d, fill: "none", ...attributes });

/** Words at a point; `at` is start, middle or end. */
export const words = (x, y, text, at = "start", attributes = {}) =>
  mark("text", { x, y, "text-anchor": at === "start" ? null : at, ...attributes }, safe(text));

const pen = document.createElement("canvas").getContext("2d");
const widths = new Map(); // of words that were measured, by their size

/** How wide words are, as bold as any in a picture. */
export function room(text, size = 12) {
  const key = `${size} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 20000) widths.clear();
    pen.font = `600 ${size}px ${FONT}`;
    widths.set(key, (width = pen.measureText(text).width));
  }
  return width;
}

/** Words, shortened so that they fit; nothing where not even a few letters do. */
export function fitting(text, width, size = 12) {
  if (room(text, size) <= width) return text;
  let end = Math.floor((text.length * width) / room(text, size));
  while (end > 3 && room(`${text.slice(0, end)}…`, size) > width) end -= 1;
  return end < 4 ? "" : `${text.slice(0, end)}…`;
}

/** The longest of some texts that fits, given longest first; the last one is shortened. */
export const firstFit = (texts, width, size = 12) =>
  texts.find((text) => room(text, size) <= width) ?? fitting(texts.at(-1), width, size);

let made = 0;

/** A pattern of slanted lines, and the paint that uses it: time in which nobody works. */
export function hatching() {
  const id = `av-hatch-${++made}`;
  const line = mark("path", { d: "M-1 7L7 -1M-1 1L1 -1M5 7L7 5", class: "av-hatch" });
  const size = { width: 6, height: 6, patternUnits: "userSpaceOnUse" };
  return { defs: mark("defs", {}, mark("pattern", { id, ...size }, line)), paint: `url(#${id})` };
}

/** A whole picture at the size of the screen; `label` is what it says to those who cannot see it. */
export function picture(width, height, inner, label) {
  const size = { width, height, viewBox: `0 0 ${short(width)} ${short(height)}` };
  const over = mark("g", { class: "av-over", "aria-hidden": "true" }, " ");
  return mark("svg", { ...size, role: "img", "aria-label": label }, inner + over);
}
