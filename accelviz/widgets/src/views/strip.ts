// The nonzeros of the followed row one after the other, and who has which: the strip that arrows
// walk.

import { count, fitting, mark, number, path, picture, quietWords, rect, room, span, words }
  from "../marks";
import { clamp } from "../numbers";
import type { Focus, Picture } from "../types";
import type { FollowedRow } from "./followed";

const CELL = 34; // height
const MANY = 120; // runs from which on they are two shapes, every other one each
const LEAST = 3; // pixels that a nonzero needs to be drawn by itself

export interface Strip extends Picture {
  /** The nonzero at a distance from the left. */
  nonzero(offset: number): number;
}

/** The strip; `at` is the nonzero where the arrows are. */
export function strip(row: FollowedRow, width: number, at: number): Strip {
  const { degree, columns, pieces, worker, blocks } = row;
  const cell = Math.min(width / Math.max(degree, 1), 64), wide = cell * degree;
  const x = (i: number) => i * cell;
  const parts: string[] = [];
  if (!degree) parts.push(words(0, 22, "This row has no nonzero."));
  if (degree && !pieces.length) parts.push(rect(0, 0, wide, CELL, { class: "av-soft" }));
  let hidden = 0, named = -Infinity; // how far the last name goes that may be wider than its run
  const shade = (k: number) => (k % 2 ? "av-soft av-other" : "av-soft");
  const many = pieces.length > MANY, shapes = ["", ""];
  pieces.forEach((piece, k) => {
    if (!piece.count) return;
    const left = x(piece.at), long = cell * piece.count;
    if (many) {
      shapes[k % 2] +=
        `M${left.toFixed(2)} 0h${long.toFixed(2)}v${CELL}h${(-long).toFixed(2)}z`;
      hidden += 1;
      return;
    }
    parts.push(rect(left, 0, long, CELL, { "class": shade(k), "data-m": `s${k}` }));
    const name = `${worker} ${number(piece.warp)}`, bare = number(piece.warp);
    const whole = blocks[0] === blocks[1] ? name : `${name} of block ${number(piece.block)}`;
    const middle = left + long / 2, half = room(bare) / 2;
    const free = long > 4 && middle - half > named + 4 && middle - half >= 0 &&
      middle + half <= width;
    const text = [whole, name].find((one) => room(one) < long - 4) ?? (free ? bare : "");
    if (long > 4)
      parts.push(path(`M${left + 1.5} ${CELL + 3}v5h${long - 3}v-5`, { class: "av-brace" }));
    if (!text) return void (hidden += 1);
    named = middle + room(text) / 2;
    parts.push(words(middle, CELL + 22, text, "middle", { class: "av-r" }));
  });
  if (many) shapes.forEach((d, k) => parts.push(mark("path", { d, class: shade(k) })));
  if (hidden)
    parts.push(quietWords(0, CELL + 40,
      `${count(pieces.length, "run")} in ${worker}s, one after the other`));
  if (cell >= LEAST && cell < width) {
    let cuts = "";
    for (let i = 1; i < degree; ++i) cuts += `M${x(i).toFixed(2)} 0v${CELL}`;
    parts.push(path(cuts, { class: "av-cut" }));
  }
  if (columns && cell >= 12)
    columns.forEach((column, i) => {
      const text = number(column);
      if (room(text, 11) < cell - 3)
        parts.push(words(x(i) + cell / 2, 21, text, "middle", { "font-size": 11 }));
    });
  parts.push(rect(0, 0, wide, CELL, { "class": "av-hit", "data-f": "strip@" }));
  if (degree) parts.push(rect(x(at), 1, Math.max(cell, 2), CELL - 2, { class: "av-here" }));
  const label = `The ${count(degree, "nonzero")} of row ${number(row.row)} in their order: ` +
    `${said(row)}`;
  return {
    svg: picture(width, CELL + (hidden ? 46 : 28), parts.join(""), label),
    over({ nonzeros: [first, last] = [0, -1] }: Focus) {
      return last < first ? ""
        : rect(x(first), 0, Math.max((last - first + 1) * cell, 2), CELL, { class: "av-ring" });
    },
    nonzero: (offset) => clamp(Math.floor(offset / cell), 0, degree - 1),
  };
}

function said({ pieces, worker }: FollowedRow) {
  if (!pieces.length) return "it is not known who has which.";
  const warps = pieces.map((piece) => piece.warp);
  if (pieces.length === 1) return `${worker} ${number(warps[0])} has them all.`;
  const range = span(worker, Math.min(...warps), Math.max(...warps));
  return `${count(pieces.length, "run")}, ${fitting(range, 400)}.`;
}
