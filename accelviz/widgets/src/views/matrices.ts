// Y = A X as three matrices with the followed row in them, and the row's neighborhood in the graph.
import { count, fitting, mark, number, path, picture, rect, room, words } from "../marks";
import { short } from "../numbers";
import { capital, gatheredMany, gatheredOf, readOf, written } from "./followed";

const DOTS = 6000; // nonzeros of A that are drawn at most
const LINES = 240; // rows of X that are drawn one by one
const NODES = 900; // neighbors that are drawn one by one
const MANY = 120; // neighbors from which on they are one shape

const spied = new WeakMap(); // graph to its dots, by the side of the square

/** Dots where A has nonzeros, in every k-th row, as a path; empty where columns are not known. */
function dots(graph, side) {
  const known = spied.get(graph) ?? new Map();
  spied.set(graph, known);
  if (known.has(side)) return known.get(side);
  let drawn = "";
  let left = DOTS;
  const lines = Math.min(graph.rows, side);
  for (let line = 0; line < lines && left > 0; ++line) {
    const columns = graph.columns(Math.floor(((line + 0.5) / lines) * graph.rows));
    let last = -1;
    for (const column of columns ?? []) {
      const x = Math.floor((column / graph.cols) * side);
      if (x !== last && left-- > 0) drawn += `M${x} ${Math.floor((line / lines) * side) + 0.5}h1`;
      last = x;
    }
  }
  known.set(side, drawn);
  return drawn;
}

/** A, X and Y with the row, the rows of X that it gathers, and the row of Y that it writes.
 *  Other operations than SpMM have other names, and may have a row a nonzero in place of X or Y. */
export function equation(row, width) {
  const { graph, degree, columns, nCols, operation, reads, writes, beside } = row;
  const { at_nonzeros, per_nonzero } = operation;
  const own_columns = operation.wide ? nCols : 1;
  const lines = [at_nonzeros ? graph.nnz : graph.cols, per_nonzero ? graph.nnz : graph.rows];
  const wished = Math.round(Math.min(width * 0.5, 230));
  const narrow = Math.round(Math.min(Math.max((wished * nCols) / Math.max(graph.cols, 1), 46), 84));
  const label = `row ${number(row.row)}`;
  const gap = 34;
  const size = (rows, wide) => {
    const whole = `${number(rows)} × ${number(wide)}`;
    return room(whole, 11) < narrow + gap - 6 || wide === graph.cols ? whole : `${short(rows)} × ${number(wide)}`;
  };
  const over = Math.max(room(size(lines[1], own_columns), 11) - narrow, 0) / 2 + 2; // of Y's size
  const left = room(label, 12) + 12;
  const between = beside ? narrow + gap : 0; // the matrix of which the row's own row is read, left of X
  const others = left + between + 2 * narrow + 2 * gap + over;
  const side = Math.min(wished, Math.max(width - others, 60));
  const free = width - (others + side);
  const start = Math.max(Math.min(free / 2, 60), 0);
  const A = start + left;
  const U = A + side + gap;
  const X = U + between;
  const Y = X + narrow + gap;
  const top = 40;
  const y = (index, of) => top + ((index + 0.5) / Math.max(of, 1)) * side;
  const x = (column) => A + ((column + 0.5) / Math.max(graph.cols, 1)) * side;
  const own = y(row.row, graph.rows);
  const head = (at, wide, name, text) =>
    words(at + wide / 2, 14, name, "middle", { class: "av-b" }) +
    words(at + wide / 2, 30, text, "middle", { class: "av-q", "font-size": 11 });
  const product = !at_nonzeros && !per_nonzero;
  // The rows of its nonzeros, side by side in an array that has one for each.
  const [first, next] = [graph.pointers[row.row], graph.pointers[row.row + 1]];
  const from = top + (first / Math.max(graph.nnz, 1)) * side;
  const band = (x0, token, name) => {
    const high = Math.max(((next - first) / Math.max(graph.nnz, 1)) * side, 4);
    return rect(x0, Math.min(from, top + side - high), narrow, high, { class: "av-row", "data-f": token, "data-m": name });
  };
  const parts = [
    head(A, side, row.matrix, size(graph.rows, graph.cols)),
    beside ? head(U, narrow, beside, size(at_nonzeros ? lines[0] : graph.rows, nCols)) : "",
    head(X, narrow, reads, size(lines[0], nCols)),
    head(Y, narrow, writes, size(lines[1], own_columns)),
    rect(A, top, side, side, { class: "av-matrix" }) + rect(X, top, narrow, side, { class: "av-matrix" }),
    rect(Y, top, narrow, side, { class: "av-matrix" }),
    words(U - gap / 2, top + side / 2 + 6, product ? "×" : "→", "middle", { class: "av-big" }),
    words(Y - gap / 2, top + side / 2 + 6, product ? "=" : "→", "middle", { class: "av-big" }),
    path(dots(graph, side), { class: "av-dots", transform: `translate(${A} ${top})` }),
  ];
  if (beside) {
    parts.push(rect(U, top, narrow, side, { class: "av-matrix" }));
    parts.push(words(X - gap / 2, top + side / 2 + 6, "·", "middle", { class: "av-big" }));
    if (degree) parts.push(at_nonzeros ? band(U, "row", "urow") : rect(U, own - 2, narrow, 4, { class: "av-row", "data-f": "row", "data-m": "urow" }));
  }
  const last = (columns?.length ?? 0) - 1;
  const step = Math.max(1, Math.ceil((last + 1) / LINES));
  for (let i = 0; i <= last; i += step) {
    const at = y(columns[i], graph.cols);
    const token = `nz:${i}:${Math.min(i + step - 1, last)}`;
    if (!at_nonzeros) parts.push(rect(X, at - 1, narrow, 2, { class: "av-row", "data-f": token, "data-m": `x${i}` }));
    parts.push(
      rect(x(columns[i]) - 1, own - 4, 2, 8, { class: "av-row", "data-f": token, "data-m": `a${i}` }),
    );
  }
  parts.push(
    rect(A, own - 1, side, 2, { class: "av-row av-thin", "data-f": "row", "data-m": "arow" }),
    at_nonzeros && degree ? band(X, "row", "xrow") : "",
    per_nonzero ? (degree ? band(Y, "y", "yrow") : "") : rect(Y, own - 2, narrow, 4, { class: "av-row", "data-f": "y", "data-m": "yrow" }),
    words(A - 8, Math.min(Math.max(own + 4, top + 10), top + side), label, "end", { class: "av-r" }),
  );
  const done = `${gatheredOf(row)} ${at_nonzeros ? "read" : "gathered"}, ${per_nonzero ? "as many" : "one"} of ${writes} written`;
  const had = fitting(count(degree, "nonzero"), side + gap);
  // In the middle below both, or further right: beside what stands below A.
  const middle = Math.max((X + Y + narrow) / 2, A + (side + room(had) + room(done)) / 2 + 16);
  const under = [
    words(A + side / 2, top + side + 17, had, "middle", { class: "av-r" }),
    words(middle, top + side + 17, done, "middle", { class: "av-r" }),
  ];
  const fits = middle + room(done) / 2 < width;
  if (!fits) under[1] = words(X + narrow / 2, top + side + 17, gatheredMany(row), "middle", { class: "av-r" });
  const alt = `${operation.formula}. ${capital(label)} of ${row.matrix} has ${count(degree, "nonzero")}, so it ${at_nonzeros ? "reads" : "gathers"} ${readOf(row)} and writes ${written(row)}.`;
  return {
    svg: picture(width, top + side + 26, parts.join("") + under.join(""), alt),
    over(focus) {
      if (focus.y) return rect(Y - 2, (per_nonzero ? from : own) - 4, narrow + 4, 8, { class: "av-ring" });
      const found = [];
      for (const column of focus.columns ?? []) {
        const at = at_nonzeros ? from : y(column, graph.cols);
        for (const left of at_nonzeros && beside ? [U, X] : [X])
          found.push(rect(left - 3, at - 3, narrow + 6, 6, { class: "av-ring" }));
        found.push(rect(x(column) - 4, own - 7, 8, 14, { class: "av-ring" }));
      }
      return found.join("");
    },
  };
}

/** The row in the middle, around it the neighbors whose rows of X it sums, in the row's order. */
export function neighborhood(row, width, height) {
  const { columns, pieces } = row;
  const n = columns?.length ?? 0;
  const step = Math.max(1, Math.ceil(n / NODES));
  const shown = Math.ceil(n / step);
  const names = shown <= 30 && step === 1;
  const several = pieces.length > 1;
  const edge = names ? 26 + room(number(row.graph.cols), 11) : several ? 34 : 10;
  const radius = Math.max(Math.min(width / 2 - edge, height / 2 - (names ? 34 : 29)), 30);
  const [cx, cy] = [width / 2, height / 2];
  const rings = Math.max(1, Math.ceil(shown / ((2 * Math.PI * radius) / 6)));
  const size = rings > 1 ? 2 : Math.min(6, Math.max((Math.PI * radius) / Math.max(shown, 1) - 0.7, 2));
  const turn = (index) => ((index + 0.5) / Math.max(n, 1)) * 2 * Math.PI - Math.PI / 2;
  const at = (index, far) => [cx + far * Math.cos(turn(index)), cy + far * Math.sin(turn(index))];
  const far = (k) => radius - (k % rings) * Math.min(7, (radius - 24) / rings);
  const token = (k) => `nz:${k * step}:${Math.min((k + 1) * step - 1, n - 1)}`;
  let [edges, nodes, circles, text] = ["", "", "", ""];
  for (let k = 0; k < shown; ++k) {
    const i = k * step;
    const [x, y] = at(i, far(k));
    if (shown <= 400) edges += `M${cx.toFixed(1)} ${cy.toFixed(1)}L${x.toFixed(1)} ${y.toFixed(1)}`;
    if (shown > MANY) {
      const half = `a${size} ${size} 0 1 0`;
      circles += `M${(x - size).toFixed(1)} ${y.toFixed(1)}${half} ${2 * size} 0${half} ${-2 * size} 0`;
      continue;
    }
    nodes += mark("circle", { cx: x, cy: y, r: size, class: "av-node", "data-f": token(k) });
    if (!names) continue;
    const [tx, ty] = at(i, radius + (several ? 19 : 11));
    const side = Math.abs(tx - cx) < 8 ? "middle" : tx > cx ? "start" : "end";
    text += words(tx, ty + 4, number(columns[i]), side, { class: "av-q", "font-size": 11 });
  }
  if (circles) nodes = mark("path", { d: circles, class: "av-node", "data-f": "nodes@" });
  const arcs = several ? arcsOf(row, n, cx, cy, radius + 12, names) : "";
  const middle = mark("circle", { cx, cy, r: 15, class: "av-row", "data-f": "row" });
  const label = number(row.row);
  const wide = room(label, 11) > 28;
  const centre = words(cx, wide ? cy + 29 : cy + 4, label, "middle", {
    class: wide ? "av-r av-halo" : "av-on",
    "font-size": 11,
  });
  const inner = path(
    edges, { class: "av-edges", opacity: shown > 60 ? 0.35 : 0.8 },
  ) + arcs + nodes + middle + centre + text;
  const alt = `Row ${label} and its ${count(n, "neighbor")} in the graph${several ? `, shared by ${count(pieces.length, "run")} of nonzeros` : ""}.`;
  return {
    svg: picture(width, height, inner, alt),
    // What the node at a point stands for.
    token(x, y) {
      let nearest = 0, least = Infinity;
      for (let k = 0; k < shown; ++k) {
        const [nx, ny] = at(k * step, far(k)), apart = (nx - x) ** 2 + (ny - y) ** 2;
        if (apart < least) [nearest, least] = [k, apart];
      }
      return token(nearest);
    },
    over(focus) {
      const [first, last] = focus.nonzeros ?? [0, -1];
      let lit = "";
      for (let i = first; i <= last; i = Math.max(i + 1, (Math.floor(i / step) + 1) * step)) {
        const k = Math.floor(i / step);
        const [x, y] = at(k * step, far(k));
        lit += mark("circle", { cx: x, cy: y, r: size + 3, class: "av-ring" });
        if (last - first < 60) lit += path(`M${cx} ${cy}L${x} ${y}`, { class: "av-ring" });
      }
      return lit;
    },
  };
}

// Arcs around the neighbors: which worker sums them.
function arcsOf(row, n, cx, cy, radius, named) {
  const wide = row.pieces.filter((piece) => piece.count);
  if (!n || wide.length > 120) return "";
  const point = (share, far) => {
    const angle = share * 2 * Math.PI - Math.PI / 2;
    return [cx + far * Math.cos(angle), cy + far * Math.sin(angle)];
  };
  const gap = Math.min(0.008, 0.15 / wide.length);
  let found = "";
  for (const piece of wide) {
    const [from, to] = [piece.at / n + gap, (piece.at + piece.count) / n - gap];
    if (to <= from) continue;
    const [x0, y0] = point(from, radius);
    const [x1, y1] = point(Math.min(to, from + 0.9999), radius);
    const d = `M${x0.toFixed(1)} ${y0.toFixed(1)}A${radius} ${radius} 0 ${to - from > 0.5 ? 1 : 0} 1 ${x1.toFixed(1)} ${y1.toFixed(1)}`;
    found += path(d, { class: "av-arc", "data-f": `run:${piece.block}:${piece.warp}:${piece.start}` });
    const long = (to - from) * 2 * Math.PI * radius;
    if (wide.length > 24 || long < 14 || named) continue;
    const [x, y] = point((from + to) / 2, radius + 8);
    const side = Math.abs(x - cx) < 12 ? "middle" : x > cx ? "start" : "end";
    found += words(x, y + 4, number(piece.warp), side, { class: "av-r", "font-size": 11 });
  }
  return found;
}
