// SVG marks as text, which is the fastest way to redraw a thousand of them per move of a slider.

// The font of panel.css.
const FONT = 'system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const SIGNS: Record<string, string> = {
  "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;",
};

export const escape = (text: unknown) => String(text).replace(/[&<>"']/g, (sign) => SIGNS[sign]);

const twoDigits = (value: unknown) =>
  typeof value === "number" ? Math.round(value * 100) / 100 : value;

type Attributes = Record<string, string | number | boolean | null | undefined>;

/** An SVG element; undefined, null and false attributes are left out. */
export function mark(tag: string, attributes: Attributes = {}, inner = "") {
  let text = `<${tag}`;
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && value !== null && value !== false)
      text += ` ${name}="${escape(twoDigits(value))}"`;
  return inner === "" ? `${text}/>` : `${text}>${inner}</${tag}>`;
}

export const rect = (
  x: number, y: number, width: number, height: number, attributes: Attributes,
) => mark("rect", { x, y, width: Math.max(width, 0), height: Math.max(height, 0), ...attributes });

export const path = (d: string, attributes: Attributes) =>
  mark("path", { d, fill: "none", ...attributes });

/** A frame that highlights a part of a picture. */
export const ring = (x: number, y: number, width: number, height: number) =>
  rect(x, y, width, height, { class: "av-ring" });

type Anchor = "start" | "middle" | "end";

export const textMark = (
  x: number, y: number, text: unknown, anchor: Anchor = "start", attributes: Attributes = {},
) => mark("text", { x, y, "text-anchor": anchor === "start" ? null : anchor, ...attributes },
  escape(text));

/** Text in the muted colour of labels. */
export const mutedText = (
  x: number, y: number, text: unknown, anchor: Anchor = "start", size: number | null = null,
) => textMark(x, y, text, anchor, { "class": "av-q", "font-size": size });

/** The anchor of text at `x`, which keeps it inside a picture from `low` to `high`. */
export const anchorIn = (x: number, low: number, high: number): Anchor =>
  x > high ? "end" : x < low ? "start" : "middle";

const pen = document.createElement("canvas").getContext("2d")!;
const widths = new Map<string, number>(); // measured widths, by size and text

/** Width of text in pixels, in the boldest weight used. */
export function textWidth(text: string, size = 12) {
  const key = `${size} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 20000) widths.clear();
    pen.font = `600 ${size}px ${FONT}`;
    widths.set(key, (width = pen.measureText(text).width));
  }
  return width;
}

/** Text shortened to a width in pixels; empty if not even three letters fit. */
export function shortened(text: string, width: number, size = 12) {
  if (textWidth(text, size) <= width) return text;
  let end = Math.floor((text.length * width) / textWidth(text, size));
  while (end > 3 && textWidth(`${text.slice(0, end)}…`, size) > width) end -= 1;
  return end < 4 ? "" : `${text.slice(0, end)}…`;
}

/** The first text that fits in a width; if none does, the last one, shortened. */
export const firstFit = (texts: string[], width: number, size = 12) =>
  texts.find((text) => textWidth(text, size) <= width) ?? shortened(texts.at(-1)!, width, size);

let patterns = 0;

/** A hatching pattern for idle time: its definition, and a paint that uses it. */
export function hatching(look = "av-hatch") {
  const id = `av-hatch-${++patterns}`;
  const line = mark("path", { d: "M-1 7L7 -1M-1 1L1 -1M5 7L7 5", class: look });
  const size = { width: 6, height: 6, patternUnits: "userSpaceOnUse" };
  return { defs: mark("defs", {}, mark("pattern", { id, ...size }, line)), paint: `url(#${id})` };
}

/** An SVG picture of a size in pixels; `label` is its accessible description. */
export function picture(width: number, height: number, inner: string, label: string) {
  const viewBox = `0 0 ${twoDigits(width)} ${twoDigits(height)}`;
  const over = mark("g", { "class": "av-over", "aria-hidden": "true" }, " ");
  // A picture with marks that have something to say is in reach of the keys; see link.ts.
  const keys = /data-(f|say)="/.test(inner)
    ? { "tabindex": 0, "data-lm-suppress-shortcuts": "true" } : {};
  return mark("svg", { width, height, viewBox, ...keys, "role": "img", "aria-label": label },
    inner + over);
}
