// The nonzeros of the followed row one after the other, and who has which: the strip that arrows walk.
import { count, fitting, mark, number, path, picture, rect, room, span, words } from "../marks";

const CELL = 34; // height
const MANY = 120; // runs from which on they are two shapes, every other one each
const LEAST = 3; // pixels that a nonzero needs to be drawn by itself

/** The strip; `at` is the nonzero where the arrows are. */
export function strip(row, width, at) {
  const { degree, columns, pieces, worker } = row;
  const per = width / Math.max(degree, 1);
  const cell = Math.min(per, 64);
  const wide = cell * degree;
  const x = (i) => i * cell;
  const parts = [];
  if (!degree) parts.push(words(0, 22, "This row has no nonzero.", "start", { class: "av-q" }));
  if (degree && !pieces.length) parts.push(rect(0, 0, wide, CELL, { class: "av-soft" }));
  let hidden = 0, named = -Infinity; // how far the last name goes that may be wider than its run
  const shade = (k) => (k % 2 ? "av-soft av-other" : "av-soft");
  const many = pieces.length > MANY, shapes = ["", ""];
  pieces.forEach((piece, k) => {
    if (!piece.count) return;
    const long = cell * piece.count;
    if (many) {
      shapes[k % 2] += `M${x(piece.at).toFixed(2)} 0h${long.toFixed(2)}v${CELL}h${(-long).toFixed(2)}z`;
      hidden += 1;
      return;
    }
    parts.push(rect(x(piece.at), 0, long, CELL, { class: shade(k), "data-m": `s${k}` }));
    const name = `${worker} ${number(piece.warp)}`;
    const whole = row.blocks[0] === row.blocks[1] ? name : `${name} of block ${number(piece.block)}`;
    const bare = number(piece.warp), middle = x(piece.at) + long / 2, half = room(bare, 12) / 2;
    const free = long > 4 && middle - half > named + 4 && middle - half >= 0 && middle + half <= width;
    const text = [whole, name].find((each) => room(each, 12) < long - 4) ?? (free ? bare : "");
    if (long > 4) parts.push(path(`M${x(piece.at) + 1.5} ${CELL + 3}v5h${long - 3}v-5`, { class: "av-brace" }));
    if (!text) return void (hidden += 1);
    named = middle + room(text, 12) / 2;
    parts.push(words(middle, CELL + 22, text, "middle", { class: "av-r" }));
  });
  if (many) shapes.forEach((d, k) => parts.push(mark("path", { d, class: shade(k) })));
  if (hidden) parts.push(words(0, CELL + 40, `${count(pieces.length, "run")} in ${worker}s, one after the other`, "start", { class: "av-q" }));
  if (cell >= LEAST && cell < width) {
    let cuts = "";
    for (let i = 1; i < degree; ++i) cuts += `M${x(i).toFixed(2)} 0v${CELL}`;
    parts.push(path(cuts, { class: "av-cut" }));
  }
  if (columns && cell >= 12)
    for (let i = 0; i < degree; ++i) {
      const text = number(columns[i]);
      if (room(text, 11) < cell - 3) parts.push(words(x(i) + cell / 2, 21, text, "middle", { "font-size": 11 }));
    }
  parts.push(rect(0, 0, wide, CELL, { class: "av-hit", "data-f": "strip@" }));
  const height = CELL + (hidden ? 46 : 28);
  const cursor = degree ? rect(x(at), 1, Math.max(cell, 2), CELL - 2, { class: "av-here" }) : "";
  const alt = `The ${count(degree, "nonzero")} of row ${number(row.row)} in their order: ${said(row)}`;
  return {
    svg: picture(width, height, parts.join("") + cursor, alt),
    over(focus) {
      const [first, last] = focus.nonzeros ?? [0, -1];
      return last < first ? "" : rect(
        x(first), 0, Math.max((last - first + 1) * cell, 2), CELL, { class: "av-ring" },
      );
    },
    nonzero: (offset) => Math.min(Math.max(Math.floor(offset / cell), 0), degree - 1),
  };
}

function said({ pieces, worker }) {
  if (!pieces.length) return "it is not known who has which.";
  const warps = pieces.map((piece) => piece.warp);
  if (pieces.length === 1) return `${worker} ${number(warps[0])} has them all.`;
  const [least, most] = [Math.min(...warps), Math.max(...warps)];
  return `${count(pieces.length, "run")}, ${fitting(span(worker, least, most), 400)}.`;
}
