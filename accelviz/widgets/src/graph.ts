// The graph as the page has it: degrees, pointers, the order by degree. Columns may be left out.

export function openGraph(raw) {
  const { name, rows, cols } = raw;
  const degrees = Int32Array.from(raw.degrees);
  const pointers = new Float64Array(rows + 1);
  let largest = 0;
  for (let row = 0; row < rows; row++) {
    const degree = degrees[row];
    pointers[row + 1] = pointers[row] + degree;
    if (degree > largest) largest = degree;
  }
  const graph = { name, rows, cols, nnz: pointers[rows], largest, degrees, pointers };
  graph.kind = raw.kind ?? "";
  const counts = new Float64Array(largest + 1);
  for (let row = 0; row < rows; row++) counts[degrees[row]] += 1;
  graph.histogram = { degrees: [], rows: [] };
  counts.forEach((many, degree) => {
    if (many) graph.histogram.degrees.push(degree), graph.histogram.rows.push(many);
  });
  let sorted = null;
  graph.sorted = () => (sorted ??= sortByDegree(degrees, counts));
  const parts = new Map(); // row to its columns, where only some were sent
  for (const part of raw.some ?? []) parts.set(part.row, Int32Array.from(part.columns));
  graph.columns = (row) => {
    if (raw.columns) return Int32Array.from(raw.columns.subarray(pointers[row], pointers[row + 1]));
    return parts.get(row) ?? (degrees[row] ? null : new Int32Array(0));
  };
  graph.learn = (row, columns) => parts.set(row, Int32Array.from(columns));
  return graph;
}

// The stable counting sort of `accelviz.degree_sort`: order[place] is a row, place[row] its place.
function sortByDegree(degrees, counts) {
  const next = new Float64Array(counts.length);
  for (let degree = 1; degree < counts.length; degree++)
    next[degree] = next[degree - 1] + counts[degree - 1];
  const order = new Int32Array(degrees.length);
  const place = new Int32Array(degrees.length);
  for (let row = 0; row < degrees.length; row++) {
    const at = next[degrees[row]]++;
    order[at] = row;
    place[row] = at;
  }
  return { order, place };
}
