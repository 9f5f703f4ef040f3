// Arithmetic, formatting of numbers, a cache, and metadata records.

import type { Side } from "./store";
import type { Value } from "./types";

export const ceilDiv = (dividend: number, divisor: number) => Math.ceil(dividend / divisor);

export const clamp = (value: number, low: number, high: number) =>
  Math.max(low, Math.min(value, high));

/** The last index of an ascending array whose entry is at most `value`; -1 if none. */
export function binarySearch(
  ascending: ArrayLike<number>, value: number, length = ascending.length,
) {
  let low = 0, high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ascending[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** A cache of `most` results that drops the least recently used one. */
export function makeCache<Result>(most: number) {
  const results = new Map<string, Result>();
  return (key: string, make: () => Result) => {
    const result = results.has(key) ? results.get(key)! : make();
    results.delete(key);
    results.set(key, result);
    if (results.size > most) results.delete(results.keys().next().value!);
    return result;
  };
}

export type MetadataRecord = ReturnType<typeof recordOf>;
export type Field = MetadataRecord["fields"][number][number];

// A name such as "parts | part" names the upper and the lower 16 bits of a word.
function fieldsOf(name: string | undefined, word: number) {
  if (!name) return [];
  const [upper, lower] = name.split(" | ");
  if (lower === undefined) return [{ name, bits: 32, value: word | 0 }];
  return [{ name: upper, bits: 16, value: word >>> 16 },
    { name: lower, bits: 16, value: word & 0xffff }];
}

/** A metadata record: its 32-bit words, and the named fields in each. */
export const recordOf = (title: string, names: string[], words: number[], meaning = "") => ({
  title, words: words.map((word) => word >>> 0), meaning,
  fields: words.map((word, i) => fieldsOf(names[i], word)),
});

const english = new Intl.NumberFormat("en-US");

/** A number with thousands separators: "1,358". */
export const number = (value: number) => english.format(value);

/** "1 nonzero", "1,358 nonzeros". */
export const count = (value: number, noun: string, plural = `${noun}s`) =>
  `${number(value)} ${value === 1 ? noun : plural}`;

/** "warp 3", "warps 0 to 5". */
export const span = (noun: string, first: number, last: number) => first === last
  ? `${noun} ${number(first)}` : `${noun}s ${number(first)} to ${number(last)}`;

export const capitalize = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

export const rounded = (value: number, digits: number) => Number(value.toFixed(digits));

/** The difference of two numbers, both rounded to `digits` decimals. */
export const difference = (a: number, b: number, digits: number) =>
  rounded(rounded(a, digits) - rounded(b, digits), digits);

export const percent = (share: number, digits = 1) => `${(100 * share).toFixed(digits)} %`;

/** A side's idle share of warp time as text; `unknown` if it is not known. */
export const idleShareText = ({ summary }: Side, unknown = "") =>
  Number.isNaN(summary.idle_share) ? unknown : percent(summary.idle_share);

/** A number in few characters: "950", "12.3k", "2.9M". */
export function short(value: number) {
  if (!Number.isFinite(value)) return "not known";
  for (const [least, unit, divisor] of [[1e9, "G", 1e9], [1e6, "M", 1e6],
    [1e4, "k", 1e3]] as const) {
    if (Math.abs(value) < least) continue;
    const scaled = value / divisor;
    return `${scaled < 999.5 ? Number(scaled.toPrecision(3)) : Math.round(scaled)}${unit}`;
  }
  if (Number.isInteger(value) || value >= 100) return number(Math.round(value));
  return String(Number(value.toPrecision(2)));
}

/** A time in microseconds: with one decimal below 100, else whole. */
export const micros = (time: number) =>
  `${Math.abs(time) < 99.95 ? time.toFixed(1) : number(rounded(time, 0))} µs`;

/** A parameter's value as text; for null, "by rule" and the value chosen, if known. */
export const valueOrRule = (value: Value, chosen?: Value) => value !== null ? String(value)
  : (chosen ?? null) === null ? "by rule" : `by rule: ${chosen}`;

/** A parameter's name and value: "ngs=32", or "ngs by rule: 16". */
export const parameterText = (name: string, value: Value, chosen?: Value) =>
  `${name}${value === null ? " " : "="}${valueOrRule(value, chosen)}`;
