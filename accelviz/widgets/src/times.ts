// Kernel times of a setting: recorded on a GPU, or predicted by warp time, the time of each block's
// busiest warp times its warps. Python's `timing` computes the same from the same table.

import type { Strategy, TimesTable, Value, Values } from "./types";

/** Explanation of a prediction. */
export const PREDICTED = "the recorded time of its default setting, scaled by how its warp time " +
  "changes; what time would be if nothing else counted.";

/** A value other than text as a Python literal. */
export const pythonValue = (value: Value) => value === null ? "None" : typeof value === "boolean"
  ? (value ? "True" : "False") : String(value);

/** Look up and predict times; `slotsOf` returns a setting's warp time, null if not known. */
export function timesOf(
  table: TimesTable | undefined, strategy: Strategy, nCols: number, parameters: Values,
  slotsOf: (parameters: Values) => number | null,
) {
  const { where = "", graphs = [] } = table ?? {};
  const columns = [...new Set(table?.columns)].sort((a, b) => a - b);
  const rows = table?.strategy.flatMap((name, i) =>
    name === strategy.name && table.columns[i] === nCols ? [i] : []) ?? [];
  const rowOf = (values: Values) => rows.find((i) => Object.entries(values).every(
    ([name, value]) => value === null || table!.setting[i][name] === pythonValue(value)));
  const defaults = Object.fromEntries(strategy.parameters.map((parameter) =>
    [parameter.name, parameter.default]));
  // Text and flags choose another kernel; the prediction starts from that kernel's default.
  const chosen = Object.entries(parameters).filter(([, value]) =>
    typeof value !== "number" && value !== null);
  const base = { ...defaults, ...Object.fromEntries(chosen) };
  const exact = rowOf(parameters), baseRow = rowOf(base);
  const median = (row: number | undefined) => row === undefined ? null : table!.median[row];
  const baseTime = median(baseRow), baseSlots = baseTime === null ? null : slotsOf(base);
  const predict = (other: Values) => {
    const slots = baseSlots && slotsOf({ ...parameters, ...other });
    return baseTime && slots ? (baseTime * slots) / baseSlots : null;
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
    where, graphs, columns, curves, basis: baseTime, predictedOf: predict,
    recorded: median(exact), predicted: predict({}),
    limit: rows.length ? table!.limit[exact ?? baseRow ?? rows[0]] : null,
  };
}
