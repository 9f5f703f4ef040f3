// Two pictures: the product Y = A X as matrices with the followed row in each, and the row's
// neighborhood in the graph. Other operations have other names for A, X and Y.

import {
  anchorIn, shortened, mark, path, picture, mutedText, rect, ring, textWidth, textMark,
} from "../marks";
import { capitalize, clamp, count, number, makeCache, short } from "../numbers";
import type { Graph, Picture } from "../types";
import type { FollowedRow } from "./followed";
import { gatheredText, readsText, outputText } from "./sentences";

const DOTS = 6000; // nonzeros of A drawn at most
const LINES = 240; // rows of X drawn at most
const NODES = 900; // neighbors drawn at most; beyond that, a mark stands for several
const MANY = 120; // more neighbors than this are drawn as one SVG element
const GAP = 34, TOP = 40; // pixels: gap between matrices, and room above them

const dotPaths = makeCache<string>(4);

/** Squares of the matrix of a large graph, the darker the more nonzeros; empty if not known. */
function densitySquares({ density }: Graph, side: number) {
  const across = Math.sqrt(density?.length ?? 0), cell = side / across, levels = 5;
  const paths = Array.from({ length: levels }, () => "");
  density?.forEach((shade, i) => {
    if (!shade) return;
    const x = (i % across) * cell, y = Math.floor(i / across) * cell;
    paths[Math.min(Math.floor((shade / 256) * levels), levels - 1)] +=
      `M${x.toFixed(1)} ${y.toFixed(1)}h${cell.toFixed(2)}v${cell.toFixed(2)}h${
        (-cell).toFixed(2)}z`;
  });
  return paths.map((d, level) =>
    mark("path", { d, class: "av-density", opacity: ((level + 1) / levels) * 0.8 })).join("");
}

/** A path with a dot per nonzero, in sampled rows; empty if column indices are not known. */
function nonzeroDots(graph: Graph, side: number) {
  const lines = Math.min(graph.rows, side);
  let drawn = "", left = DOTS;
  for (let line = 0; line < lines && left > 0; ++line) {
    let last = -1;
    for (const column of graph.columns(Math.floor(((line + 0.5) / lines) * graph.rows)) ?? []) {
      const x = Math.floor((column / graph.cols) * side);
      if (x !== last && left-- > 0) drawn += `M${x} ${Math.floor((line / lines) * side) + 0.5}h1`;
      last = x;
    }
  }
  return drawn;
}

/** The matrices A, X and Y with the followed row, the rows of X that it gathers, and its row of Y.
 *  In some operations, X or Y has a row per nonzero. */
export function equationPicture(row: FollowedRow, width: number): Picture {
  const { graph, degree, columns, nCols, operation, reads, writes, beside } = row;
  const { at_nonzeros, per_nonzero } = operation, outputColumns = operation.wide ? nCols : 1;
  const inputRows = at_nonzeros ? graph.nnz : graph.cols;
  const outputRows = per_nonzero ? graph.nnz : graph.rows;
  const desiredSide = Math.round(Math.min(width * 0.5, 230));
  const narrow = Math.round(clamp((desiredSide * nCols) / Math.max(graph.cols, 1), 46, 84));
  const name = `row ${number(row.row)}`;
  const size = (rows: number, wide: number) => {
    const whole = `${number(rows)} × ${number(wide)}`;
    return textWidth(whole, 11) < narrow + GAP - 6 || wide === graph.cols ? whole
      : `${short(rows)} × ${number(wide)}`;
  };
  // Room at the right for the label of Y's size, which may be wider than Y.
  const overhang = Math.max(textWidth(size(outputRows, outputColumns), 11) - narrow, 0) / 2 + 2;
  const left = textWidth(name) + 12;
  const between = beside ? narrow + GAP : 0; // for the second operand, left of X
  const otherWidth = left + between + 2 * narrow + 2 * GAP + overhang;
  const side = Math.min(desiredSide, Math.max(width - otherWidth, 60));
  width = Math.max(width, otherWidth + side); // a phone shows it smaller
  const A = Math.max(Math.min((width - (otherWidth + side)) / 2, 60), 0) + left;
  const U = A + side + GAP, X = U + between, Y = X + narrow + GAP;
  const y = (index: number, of: number) => TOP + ((index + 0.5) / Math.max(of, 1)) * side;
  const x = (column: number) => A + ((column + 0.5) / Math.max(graph.cols, 1)) * side;
  const rowY = y(row.row, graph.rows);
  const matrix = (at: number, wide: number, title: string, text: string) =>
    textMark(at + wide / 2, 14, title, "middle", { class: "av-b" }) +
    mutedText(at + wide / 2, 30, text, "middle", 11) +
    rect(at, TOP, wide, side, { class: "av-matrix" });
  const sign = (at: number, text: string) =>
    textMark(at - GAP / 2, TOP + side / 2 + 6, text, "middle", { class: "av-big" });
  // The band of rows that belong to its nonzeros, in arrays with a row per nonzero.
  const perNonzero = side / Math.max(graph.nnz, 1), bandTop = TOP +
    graph.pointers[row.row] * perNonzero;
  const bandHeight = Math.max(degree * perNonzero, 4);
  const band = (at: number, token: string, key: string) =>
    rect(at, Math.min(bandTop, TOP + side - bandHeight), narrow, bandHeight,
      { "class": "av-row", "data-f": token, "data-m": key });
  const line = (at: number, token: string, key: string) =>
    rect(at, rowY - 2, narrow, 4, { "class": "av-row", "data-f": token, "data-m": key });
  const product = !at_nonzeros && !per_nonzero;
  const parts = [
    matrix(A, side, row.matrix, size(graph.rows, graph.cols)),
    beside ? matrix(U, narrow, beside, size(at_nonzeros ? inputRows : graph.rows, nCols)) : "",
    matrix(X, narrow, reads, size(inputRows, nCols)),
    matrix(Y, narrow, writes, size(outputRows, outputColumns)),
    sign(U, product ? "×" : "→"), sign(Y, product ? "=" : "→"),
    mark("g", { class: "av-dots", transform: `translate(${A} ${TOP})` },
      dotPaths(`${graph.name} ${side}`, () => graph.density ? densitySquares(graph, side)
        : path(nonzeroDots(graph, side), {}))),
  ];
  if (beside) {
    parts.push(sign(X, "·"));
    if (degree) parts.push((at_nonzeros ? band : line)(U, "row", "urow"));
  }
  const last = (columns?.length ?? 0) - 1, step = Math.max(1, Math.ceil((last + 1) / LINES));
  for (let i = 0; i <= last; i += step) {
    const token = `nz:${i}:${Math.min(i + step - 1, last)}`;
    const look = { "class": "av-row", "data-f": token };
    if (!at_nonzeros)
      parts.push(rect(X, y(columns![i], graph.cols) - 1, narrow, 2,
        { ...look, "data-m": `x${i}` }));
    parts.push(rect(x(columns![i]) - 1, rowY - 4, 2, 8, { ...look, "data-m": `a${i}` }));
  }
  parts.push(
    rect(A, rowY - 1, side, 2, { "class": "av-row av-thin", "data-f": "row", "data-m": "arow" }),
    at_nonzeros && degree ? band(X, "row", "xrow") : "",
    !per_nonzero ? line(Y, "y", "yrow") : degree ? band(Y, "y", "yrow") : "",
    textMark(A - 8, clamp(rowY + 4, TOP + 10, TOP + side), name, "end", { class: "av-r" }));
  const resultText = `${gatheredText(row)} ${at_nonzeros ? "read" : "gathered"}, ` +
    `${per_nonzero ? "as many" : "one"} of ${writes} written`;
  const degreeText = shortened(count(degree, "nonzero"), side + GAP);
  // Centered below X and Y, or further right, beside the label below A.
  const middle = Math.max((X + Y + narrow) / 2,
    A + (side + textWidth(degreeText) + textWidth(resultText)) / 2 + 16);
  const [at, text] = middle + textWidth(resultText) / 2 < width ? [middle, resultText]
    : [X + narrow / 2, count(degree, row.unit)];
  parts.push(textMark(A + side / 2, TOP + side + 17, degreeText, "middle", { class: "av-r" }),
    textMark(at, TOP + side + 17, text, "middle", { class: "av-r" }));
  const label = `${operation.formula}. ${capitalize(name)} of ${row.matrix} has ` +
    `${count(degree, "nonzero")}, so it ${at_nonzeros ? "reads" : "gathers"} ${readsText(row)} ` +
    `and writes ${outputText(row)}.`;
  return {
    svg: picture(width, TOP + side + 26, parts.join(""), label),
    over(focus) {
      if (focus.y) return ring(Y - 2, (per_nonzero ? bandTop : rowY) - 4, narrow + 4, 8);
      return (focus.columns ?? []).flatMap((column) => {
        const high = at_nonzeros ? bandTop : y(column, graph.cols);
        return [...(at_nonzeros && beside ? [U, X] : [X]).map((at) =>
          ring(at - 3, high - 3, narrow + 6, 6)), ring(x(column) - 4, rowY - 7, 8, 14)];
      }).join("");
    },
  };
}

const fixed = (...numbers: number[]) => numbers.map((value) => value.toFixed(1)).join(" ");

function onCircle(cx: number, cy: number, share: number, radius: number) {
  const angle = share * 2 * Math.PI - Math.PI / 2;
  return [cx + radius * Math.cos(angle), cy + radius * Math.sin(angle)];
}

/** The row in the middle of its neighbors, whose rows of X it sums, in the order of columns. */
export function neighborhoodPicture(row: FollowedRow, width: number, height: number) {
  const { columns, pieces } = row, n = columns?.length ?? 0;
  const step = Math.max(1, Math.ceil(n / NODES)), nodeCount = Math.ceil(n / step);
  const hasLabels = nodeCount <= 30 && step === 1, isShared = pieces.length > 1;
  const edge = hasLabels ? 26 + textWidth(number(row.graph.cols), 11) : isShared ? 34 : 10;
  const radius = Math.max(Math.min(width / 2 - edge, height / 2 - (hasLabels ? 34 : 29)), 30);
  const [cx, cy] = [width / 2, height / 2];
  const rings = Math.max(1, Math.ceil(nodeCount / ((2 * Math.PI * radius) / 6)));
  const size = rings > 1 ? 2 : clamp((Math.PI * radius) / Math.max(nodeCount, 1) - 0.7, 2, 6);
  const at = (k: number, far: number) => onCircle(cx, cy, (k * step + 0.5) / Math.max(n, 1), far);
  const node = (k: number) => at(k, radius - (k % rings) * Math.min(7, (radius - 24) / rings));
  const token = (k: number) => `nz:${k * step}:${Math.min((k + 1) * step - 1, n - 1)}`;
  let [edges, nodes, circles, text] = ["", "", "", ""];
  for (let k = 0; k < nodeCount; ++k) {
    const [x, y] = node(k);
    if (nodeCount <= 400) edges += `M${fixed(cx, cy)}L${fixed(x, y)}`;
    if (nodeCount > MANY) {
      const half = `a${size} ${size} 0 1 0`;
      circles += `M${fixed(x - size, y)}${half} ${2 * size} 0${half} ${-2 * size} 0`;
      continue;
    }
    nodes += mark("circle",
      { "cx": x, "cy": y, "r": size, "class": "av-node", "data-f": token(k) });
    if (!hasLabels) continue;
    const [tx, ty] = at(k, radius + (isShared ? 19 : 11));
    text += mutedText(tx, ty + 4, number(columns![k]), sideOf(tx, cx, 8), 11);
  }
  if (circles) nodes = mark("path", { "d": circles, "class": "av-node", "data-f": "nodes@" });
  const label = number(row.row), wide = textWidth(label, 11) > 28;
  const inner = path(edges, { class: "av-edges", opacity: nodeCount > 60 ? 0.35 : 0.8 }) +
    (isShared ? arcsOf(row, n, cx, cy, radius + 12, hasLabels) : "") + nodes +
    mark("circle", { cx, cy, "r": 15, "class": "av-row", "data-f": "row" }) +
    textMark(cx, wide ? cy + 29 : cy + 4, label, "middle",
      { "class": wide ? "av-r av-halo" : "av-on", "font-size": 11 }) + text;
  const description = `Row ${label} and its ${count(n, "neighbor")} in the graph` +
    `${isShared ? `, shared by ${count(pieces.length, "run")} of nonzeros` : ""}.`;
  return {
    svg: picture(width, height, inner, description),
    token(x: number, y: number) {
      let nearest = 0, least = Infinity;
      for (let k = 0; k < nodeCount; ++k) {
        const [nx, ny] = node(k), apart = (nx - x) ** 2 + (ny - y) ** 2;
        if (apart < least) [nearest, least] = [k, apart];
      }
      return token(nearest);
    },
    over({ nonzeros: [first, last] = [0, -1] }) {
      let marks = "";
      for (let k = Math.floor(first / step); k * step <= last; ++k) {
        const [x, y] = node(k);
        marks += mark("circle", { cx: x, cy: y, r: size + 3, class: "av-ring" });
        if (last - first < 60) marks += path(`M${cx} ${cy}L${x} ${y}`, { class: "av-ring" });
      }
      return marks;
    },
  } satisfies Picture & Record<string, unknown>;
}

const sideOf = (x: number, centre: number, near: number) => {
  const anchor = anchorIn(x, centre - near, centre + near);
  return anchor === "middle" ? anchor : x > centre ? "start" : "end";
};

/** Arcs around the neighbors, one per run, with the numbers of the workers. */
function arcsOf(
  row: FollowedRow, n: number, cx: number, cy: number, radius: number, named: boolean,
) {
  const pieces = row.pieces.filter((piece) => piece.count);
  if (!n || pieces.length > 120) return "";
  const gap = Math.min(0.008, 0.15 / pieces.length);
  return pieces.map(({ block, warp, start, at, count: many }) => {
    const [from, to] = [at / n + gap, (at + many) / n - gap];
    if (to <= from) return "";
    const begin = fixed(...onCircle(cx, cy, from, radius));
    const end = fixed(...onCircle(cx, cy, Math.min(to, from + 0.9999), radius));
    const large = to - from > 0.5 ? 1 : 0;
    const arc = path(`M${begin}A${radius} ${radius} 0 ${large} 1 ${end}`,
      { "class": "av-arc", "data-f": `run:${block}:${warp}:${start}` });
    if (pieces.length > 24 || (to - from) * 2 * Math.PI * radius < 14 || named) return arc;
    const [x, y] = onCircle(cx, cy, (from + to) / 2, radius + 8);
    return arc + textMark(x, y + 4, number(warp), sideOf(x, cx, 12),
      { "class": "av-r", "font-size": 11 });
  }).join("");
}
