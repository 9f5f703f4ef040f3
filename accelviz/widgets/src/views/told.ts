// The metadata that tells a block, or a warp, its work: words of 32 bits with the fields in them.
import { fitting, mark, number, picture, rect, room, words } from "../marks";
import { rowAt } from "./followed";

const BITS = 32;
const DIGIT = 7; // pixels of a digit
const MOST = 8; // words that are drawn

/** Lines of metadata bit by bit; `line` is the one of the followed row's block or worker. */
export function metadata(row, width, line) {
  const cell = width >= 760 ? 11 : Math.max(Math.min((width - 2) / BITS, 13), 9);
  const word = cell * BITS;
  const across = Math.max(1, Math.floor((width + 18) / (word + 18)));
  const high = 74;
  const shown = line.words.slice(0, MOST);
  const parts = shown.map((value, i) => {
    const left = (i % across) * (word + 18);
    const top = Math.floor(i / across) * high;
    return one(value, line.fields[i] ?? [], i, left, top, cell, row);
  });
  const height = Math.ceil(shown.length / across) * high;
  const said = shown.map(
    (value, i) => named(value, line.fields[i] ?? []).map((f) => `${f.name} ${number(f.value)}${rowAt(row, f)}`).join(", "),
  );
  return { svg: picture(width, height, parts.join(""), `Metadata of ${line.title}: ${said.join("; ")}.`), over: () => "" };
}

const named = (value, fields) => (fields.length ? fields : [{ name: "", bits: BITS, value }]);

function one(value, fields, index, left, top, cell, row) {
  const parts = [];
  const text = (value >>> 0).toString(2).padStart(BITS, "0");
  let bit = 0;
  named(value, fields).forEach((field, k) => {
    const x = left + bit * cell;
    const wide = field.bits * cell;
    const token = `field:${index}:${k}`;
    parts.push(
      rect(x, top + 18, wide - 1, 20, { class: k % 2 ? "av-field av-other" : "av-field", "data-f": token }),
    );
    const own = ownField(field, row) ? "av-r" : "av-b";
    const whole = number(field.value) + rowAt(row, field);
    const called = field.name.replace(/^info: /, ""), free = wide - room(whole) - 10;
    const size = room(called) > free ? 11 : 12, name = fitting(called, free, size);
    parts.push(words(x + 2, top + 53, name, "start", { class: "av-q", "data-f": token, "font-size": size }));
    parts.push(
      words(x + 2 + (name ? room(name, size) + 8 : 0), top + 53, whole, "start", { class: own, "data-f": token }),
    );
    bit += field.bits;
  });
  for (const [digit, look] of [["0", "av-zero"], ["1", "av-one"]]) {
    // One element for all of them: each letter has an x of its own.
    const places = [...text].flatMap(
      (each, i) => (each === digit ? [left + (i + 0.5) * cell - DIGIT / 2] : []),
    );
    const x = places.map((place) => place.toFixed(1)).join(" ");
    if (x) parts.push(mark("text", { x, y: top + 32, class: look, "font-size": 11 }, digit.repeat(places.length)));
  }
  const hex = `0x${(value >>> 0).toString(16).padStart(8, "0")}`;
  parts.push(
    words(left, top + 12, `word ${index}: ${hex}`, "start", { class: "av-q av-mono", "font-size": 11 }),
  );
  return parts.join("");
}

// Whether a field is the place of the followed row, or its degree.
const ownField = (field, row) =>
  (/row|place/.test(field.name) && !/rows/.test(field.name) && field.value === row.place) ||
  (field.name === "degree" && field.value === row.degree);
