// The metadata that tells a block, or a warp, its work: words of 32 bits with the fields in them.

import { fitting, mark, number, picture, rect, room, words } from "../marks";
import { clamp } from "../numbers";
import type { Field, MetadataRecord, Picture } from "../types";
import { type FollowedRow, rowOfField } from "./followed";

const BITS = 32, GAP = 18, HIGH = 74; // pixels between words, and of each with its names
const DIGIT = 7; // pixels of a digit
const MOST = 8; // words that are drawn

/** A record of metadata bit by bit: the one of the followed row's block or worker. */
export function metadata(row: FollowedRow, width: number, record: MetadataRecord): Picture {
  const cell = width >= 760 ? 11 : clamp((width - 2) / BITS, 9, 13), wide = cell * BITS;
  const across = Math.max(1, Math.floor((width + GAP) / (wide + GAP)));
  const drawn = record.words.slice(0, MOST).map((word, i) =>
    ({ word, fields: fieldsOf(record, i), left: (i % across) * (wide + GAP),
      top: Math.floor(i / across) * HIGH }));
  const parts = drawn.map(({ word, fields, left, top }, i) =>
    wordPicture(word, fields, i, left, top, cell, row));
  const said = drawn.map(({ fields }) => fields.map((field) =>
    `${field.name} ${number(field.value)}${rowOfField(row, field)}`).join(", "));
  const label = `Metadata of ${record.title}: ${said.join("; ")}.`;
  const high = Math.ceil(drawn.length / across) * HIGH;
  return { svg: picture(width, high, parts.join(""), label), over: () => "" };
}

const fieldsOf = ({ words, fields }: MetadataRecord, i: number): Field[] =>
  fields[i]?.length ? fields[i] : [{ name: "", bits: BITS, value: words[i] }];

function wordPicture(
  word: number, fields: Field[], index: number, left: number, top: number, cell: number,
  row: FollowedRow,
) {
  const hex = `0x${word.toString(16).padStart(8, "0")}`;
  const parts = [words(left, top + 12, `word ${index}: ${hex}`, "start",
    { "class": "av-q av-mono", "font-size": 11 })];
  let x = left;
  fields.forEach((field, k) => {
    const wide = field.bits * cell, token = `field:${index}:${k}`;
    const look = k % 2 ? "av-field av-other" : "av-field";
    parts.push(rect(x, top + 18, wide - 1, 20, { "class": look, "data-f": token }));
    const value = number(field.value) + rowOfField(row, field);
    const called = field.name.replace(/^info: /, ""), free = wide - room(value) - 10;
    const size = room(called) > free ? 11 : 12, name = fitting(called, free, size);
    parts.push(words(x + 2, top + 53, name, "start",
      { "class": "av-q", "data-f": token, "font-size": size }));
    parts.push(words(x + 2 + (name ? room(name, size) + 8 : 0), top + 53, value, "start",
      { "class": isOfRow(field, row) ? "av-r" : "av-b", "data-f": token }));
    x += wide;
  });
  const bits = [...word.toString(2).padStart(BITS, "0")];
  for (const [digit, look] of [["0", "av-zero"], ["1", "av-one"]]) {
    // One element for all of them: each letter has an x of its own.
    const xs = bits.flatMap((bit, i) =>
      bit === digit ? [(left + (i + 0.5) * cell - DIGIT / 2).toFixed(1)] : []);
    const attributes = { "x": xs.join(" "), "y": top + 32, "class": look, "font-size": 11 };
    if (xs.length) parts.push(mark("text", attributes, digit.repeat(xs.length)));
  }
  return parts.join("");
}

/** Whether a field is the place of the followed row, or its degree. */
const isOfRow = ({ name, value }: Field, { position, degree }: FollowedRow) =>
  (/row|place/.test(name) && !/rows/.test(name) && value === position) ||
  (name === "degree" && value === degree);
