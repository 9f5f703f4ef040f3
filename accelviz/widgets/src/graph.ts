// A graph's CSR structure: degrees, row pointers, the order by degree, column indices. Of a large
// graph, column indices are sent for single rows only.

import type { Numbers, RawGraph } from "./types";

export type Graph = ReturnType<typeof openGraph>;

export function openGraph(raw: RawGraph) {
  const { name, rows, cols } = raw;
  const degrees = Int32Array.from(raw.degrees), pointers = new Float64Array(rows + 1);
  degrees.forEach((degree, row) => (pointers[row + 1] = pointers[row] + degree));
  const largest = degrees.reduce((a, b) => Math.max(a, b), 0);
  const histogram = histogramOf(degrees);
  let sorted: ReturnType<typeof sortByDegree> | undefined;
  const sentColumns = new Map<number, Int32Array>(); // column indices of single rows
  const addColumns = (row: number, columns: Numbers) =>
    void sentColumns.set(row, Int32Array.from(columns));
  for (const part of raw.row_columns ?? []) addColumns(part.row, part.columns);
  return {
    name, rows, cols, nnz: pointers[rows], largest, degrees, pointers, addColumns,
    density: raw.density ?? null,
    histogram,
    /** Rows sorted by degree: `order[position]` is a row, `position` the inverse. */
    sorted: () => (sorted ??= sortByDegree(degrees, histogram)),
    /** Column indices of a row; null if they were not sent. */
    columns(row: number) {
      if (raw.columns)
        return Int32Array.from(raw.columns.subarray(pointers[row], pointers[row + 1]));
      return sentColumns.get(row) ?? (degrees[row] ? null : new Int32Array(0));
    },
  };
}

/** Distinct degrees, ascending, and the number of rows of each. */
function histogramOf(degrees: Int32Array) {
  const counts = new Map<number, number>();
  for (const degree of degrees) counts.set(degree, (counts.get(degree) ?? 0) + 1);
  const distinct = [...counts.keys()].sort((a, b) => a - b);
  return { degrees: distinct, rows: distinct.map((degree) => counts.get(degree)!) };
}

/** Sort rows by degree with a stable counting sort, as `accelviz.degree_sort`. */
function sortByDegree(degrees: Int32Array, histogram: ReturnType<typeof histogramOf>) {
  const next = new Float64Array((histogram.degrees.at(-1) ?? 0) + 1);
  let begin = 0;
  histogram.degrees.forEach((degree, i) => {
    next[degree] = begin;
    begin += histogram.rows[i];
  });
  const order = new Int32Array(degrees.length), position = new Int32Array(degrees.length);
  degrees.forEach((degree, row) => {
    position[row] = next[degree]++;
    order[position[row]] = row;
  });
  return { order, position };
}
