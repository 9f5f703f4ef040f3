// What was recorded of a setting on a GPU, and what its warp time alone predicts: `timing` of
// Python, from the same table.

import type { Strategy, TimesTable, Value, Values } from "./types";

/** What a prediction is. */
export const PREDICTED = "the recorded time of its default setting, scaled by how its warp time " +
  "changes; what time would be if nothing else counted.";

/** A value as Python writes it. */
export const python = (value: Value) => value === null ? "None" : typeof value === "boolean"
  ? (value ? "True" : "False") : String(value);

/** `slotsOf(parameters)` returns the warp time of a setting of the strategy, null if not known. */
export function timesOf(
  table: TimesTable | undefined, strategy: Strategy, nCols: number, parameters: Values,
  slotsOf: (parameters: Values) => number | null,
) {
  const { where = "", graphs = [] } = table ?? {};
  const columns = [...new Set(table?.columns)].sort((a, b) => a - b);
  const rows = table?.strategy.flatMap((name, i) =>
    name === strategy.name && table.columns[i] === nCols ? [i] : []) ?? [];
  const rowOf = (wanted: Values) => rows.find((i) => Object.entries(wanted).every(
    ([name, value]) => value === null || table!.setting[i][name] === python(value)));
  const defaults = Object.fromEntries(strategy.parameters.map((one) => [one.name, one.default]));
  // Numbers are settings; words and flags choose another kernel, which has a default of its own.
  const chosen = Object.entries(parameters).filter(([, value]) =>
    typeof value !== "number" && value !== null);
  const basic = { ...defaults, ...Object.fromEntries(chosen) };
  const exact = rowOf(parameters), basicRow = rowOf(basic);
  const median = (row: number | undefined) => row === undefined ? null : table!.median[row];
  const basis = median(basicRow), basicSlots = basis === null ? null : slotsOf(basic);
  const predictedOf = (other: Values) => {
    const slots = basicSlots && slotsOf({ ...parameters, ...other });
    return basis && slots ? (basis * slots) / basicSlots : null;
  };
  const curves: Record<string, { value: number; recorded: number }[]> = {};
  for (const { name, values } of strategy.parameters) {
    const curve = values.flatMap((value) => {
      const row = typeof value === "number" ? rowOf({ ...parameters, [name]: value }) : undefined;
      return row === undefined || !(name in table!.setting[row]) ? []
        : [{ value: value as number, recorded: table!.median[row] }];
    });
    if (curve.length >= 3) curves[name] = curve;
  }
  return {
    where, graphs, columns, curves, basis, predictedOf,
    recorded: median(exact), predicted: predictedOf({}),
    limit: rows.length ? table!.limit[exact ?? basicRow ?? rows[0]] : null,
  };
}
