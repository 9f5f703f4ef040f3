// Two strips: the nonzeros of the followed row, through which arrow keys move, and the bits of the
// metadata record of its block or worker.

import {
  mark, mutedText, path, picture, rect, ring, shortened, textMark, textWidth,
} from "../marks";
import { clamp, count, type Field, type MetadataRecord, number, span } from "../numbers";
import type { Picture } from "../types";
import type { FollowedRow } from "./followed";
import { rowOfField, withWorkers } from "./sentences";

const CELL = 34; // pixels: height of the strip
const MANY = 120; // more runs than this are drawn as two shapes, alternating
const LEAST = 3; // pixels of a nonzero from which on nonzeros are separated by lines

/** The row's nonzeros with the worker of each run; `current` is the one framed. */
export function nonzeroStrip(row: FollowedRow, width: number, current: number) {
  const { degree, columns, pieces, worker, blocks } = row;
  const cell = Math.min(width / Math.max(degree, 1), 64), stripWidth = cell * degree;
  const x = (i: number) => i * cell, parts: string[] = [];
  if (!degree) parts.push(textMark(0, 22, "This row has no nonzero."));
  if (degree && !pieces.length) parts.push(rect(0, 0, stripWidth, CELL, { class: "av-soft" }));
  let hidden = 0, labelEnd = -Infinity; // runs without a label; right end of the last label
  const shade = (k: number) => (k % 2 ? "av-soft av-other" : "av-soft");
  const areMany = pieces.length > MANY, shapes = ["", ""];
  pieces.forEach((piece, k) => {
    if (!piece.count) return;
    const left = x(piece.at), long = cell * piece.count;
    if (areMany) {
      shapes[k % 2] += `M${left.toFixed(2)} 0h${long.toFixed(2)}v${CELL}h${(-long).toFixed(2)}z`;
      return void (hidden += 1);
    }
    parts.push(rect(left, 0, long, CELL, { "class": shade(k), "data-m": `s${k}` }));
    const name = `${worker} ${number(piece.warp)}`, bare = number(piece.warp);
    const fullName = blocks[0] === blocks[1] ? name : `${name} of block ${number(piece.block)}`;
    const middle = left + long / 2, half = textWidth(bare) / 2;
    const free = long > 4 && middle - half > labelEnd + 4 && middle - half >= 0 &&
      middle + half <= width;
    const text = [fullName, name].find((label) => textWidth(label) < long - 4) ??
      (free ? bare : "");
    if (long > 4)
      parts.push(path(`M${left + 1.5} ${CELL + 3}v5h${long - 3}v-5`, { class: "av-brace" }));
    if (!text) return void (hidden += 1);
    labelEnd = middle + textWidth(text) / 2;
    parts.push(textMark(middle, CELL + 22, text, "middle", { class: "av-r" }));
  });
  if (areMany) shapes.forEach((d, k) => parts.push(mark("path", { d, class: shade(k) })));
  if (hidden)
    parts.push(mutedText(0, CELL + 40,
      `${count(pieces.length, "run")} in ${worker}s, one after the other`));
  if (cell >= LEAST && cell < width) {
    const cuts = Array.from({ length: degree - 1 }, (_, i) => `M${x(i + 1).toFixed(2)} 0v${CELL}`);
    parts.push(path(cuts.join(""), { class: "av-cut" }));
  }
  if (columns && cell >= 12)
    columns.forEach((column, i) => {
      if (textWidth(number(column), 11) < cell - 3)
        parts.push(textMark(x(i) + cell / 2, 21, number(column), "middle", { "font-size": 11 }));
    });
  parts.push(rect(0, 0, stripWidth, CELL, { "class": "av-hit", "data-f": "strip@" }));
  if (degree) parts.push(rect(x(current), 1, Math.max(cell, 2), CELL - 2, { class: "av-here" }));
  const warps = pieces.map((piece) => piece.warp);
  const owners = !pieces.length ? "it is not known who has which"
    : pieces.length === 1 ? `${worker} ${number(warps[0])} has them all`
      : `${count(pieces.length, "run")}, ${span(worker, Math.min(...warps), Math.max(...warps))}`;
  const label = `The ${count(degree, "nonzero")} of row ${number(row.row)} in their order: ` +
    `${owners}.`;
  return {
    svg: picture(width, CELL + (hidden ? 46 : 28), parts.join(""), label),
    over: ({ nonzeros: [first, last] = [0, -1] }) => last < first ? ""
      : ring(x(first), 0, Math.max((last - first + 1) * cell, 2), CELL),
    nonzero: (offset: number) => clamp(Math.floor(offset / cell), 0, degree - 1),
  } satisfies Picture & Record<string, unknown>;
}

const BITS = 32;
const GAP = 18, HIGH = 74; // pixels: gap between words, and height of a word with its labels
const DIGIT = 7; // pixels: width of a digit
const MOST = 8; // words drawn at most

/** The words of a metadata record, with their fields and bits. */
export function metadataStrip(row: FollowedRow, width: number, record: MetadataRecord): Picture {
  const cell = width >= 760 ? 11 : clamp((width - 2) / BITS, 9, 13), wordWidth = cell * BITS;
  const across = Math.max(1, Math.floor((width + GAP) / (wordWidth + GAP)));
  const drawn = record.words.slice(0, MOST).map((word, i) => {
    const { [i]: known } = record.fields;
    const fields = known?.length ? known : [{ name: "", bits: BITS, value: word }];
    return { fields, svg: wordPicture(word, fields, i, (i % across) * (wordWidth + GAP),
      Math.floor(i / across) * HIGH, cell, row) };
  });
  const fieldTexts = drawn.map(({ fields }) => fields.map((field) =>
    `${withWorkers(row, field.name)} ${number(field.value)}${rowOfField(row, field)}`).join(", "));
  const label = `Metadata of ${record.title}: ${fieldTexts.join("; ")}.`;
  return { svg: picture(width, Math.ceil(drawn.length / across) * HIGH,
    drawn.map(({ svg }) => svg).join(""), label) };
}

function wordPicture(
  word: number, fields: Field[], index: number, left: number, top: number, cell: number,
  row: FollowedRow,
) {
  const hex = `0x${word.toString(16).padStart(8, "0")}`;
  const parts = [textMark(left, top + 12, `word ${index}: ${hex}`, "start",
    { "class": "av-q av-mono", "font-size": 11 })];
  let x = left;
  fields.forEach((field, k) => {
    const fieldWidth = field.bits * cell, token = `field:${index}:${k}`;
    const look = k % 2 ? "av-field av-other" : "av-field";
    const value = number(field.value) + rowOfField(row, field);
    const called = withWorkers(row, field.name).replace(/^info: /, "")
      .replace("of a combined warp", "of each"); // which has no room here
    const free = fieldWidth - textWidth(value) - 10;
    const size = textWidth(called) > free ? 11 : 12, name = shortened(called, free, size);
    parts.push(rect(x, top + 18, fieldWidth - 1, 20, { "class": look, "data-f": token }),
      textMark(x + 2, top + 53, name, "start",
        { "class": "av-q", "data-f": token, "font-size": size }),
      textMark(x + 2 + (name ? textWidth(name, size) + 8 : 0), top + 53, value, "start",
        { "class": describesRow(field, row) ? "av-r" : "av-b", "data-f": token }));
    x += fieldWidth;
  });
  const bits = [...word.toString(2).padStart(BITS, "0")];
  for (const [digit, look] of [["0", "av-zero"], ["1", "av-one"]]) {
    // One text element for all equal digits, with a list of x coordinates.
    const xs = bits.flatMap((bit, i) =>
      bit === digit ? [(left + (i + 0.5) * cell - DIGIT / 2).toFixed(1)] : []);
    const attributes = { "x": xs.join(" "), "y": top + 32, "class": look, "font-size": 11 };
    if (xs.length) parts.push(mark("text", attributes, digit.repeat(xs.length)));
  }
  return parts.join("");
}

/** Whether a field is the place or the degree of the followed row. */
const describesRow = ({ name, value }: Field, { position, degree }: FollowedRow) =>
  (/row|place/.test(name) && !/rows/.test(name) && value === position) ||
  (name === "degree" && value === degree);
