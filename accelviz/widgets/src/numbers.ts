// Small arithmetic that several modules need.

export const ceilDiv = (dividend, divisor) => Math.ceil(dividend / divisor);

// The last place whose entry is at most `value` in an ascending array.
export function binarySearch(ascending, value, length = ascending.length) {
  let low = 0, high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ascending[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// Fields of a word of metadata; two names in one, "parts | part", are of its upper and lower 16 bits.
export function fieldsNamed(name, word) {
  const [upper, lower] = name.split(" | ");
  if (lower === undefined) return [{ name, bits: 32, value: word | 0 }];
  return [{ name: upper, bits: 16, value: word >>> 16 }, { name: lower, bits: 16, value: word & 0xffff }];
}

// A number as it is written with so many digits after the point, and how far two of them are apart:
// what stands beside them has to be the difference of what is read.
export const rounded = (value, digits) => Number(value.toFixed(digits));
export const apart = (a, b, digits) => rounded(rounded(a, digits) - rounded(b, digits), digits);

export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;

// What is to be said where a share of waiting is, if the workload has the first head alone.
export const headsAside = ({ heads }) =>
  heads > 1 ? ` (${heads - 1} of its ${heads} heads counted as waiting)` : "";

// A count in few characters: 950, 12.3k, 2.9M.
export function short(number) {
  if (!Number.isFinite(number)) return "not known";
  for (const [least, unit, divisor] of [[1e9, "G", 1e9], [1e6, "M", 1e6], [1e4, "k", 1e3]]) {
    if (Math.abs(number) < least) continue;
    const value = number / divisor;
    return `${value < 999.5 ? Number(value.toPrecision(3)) : Math.round(value)}${unit}`;
  }
  if (Number.isInteger(number) || number >= 100) return Math.round(number).toLocaleString("en");
  return String(Number(number.toPrecision(2)));
}

// A time, in microseconds.
export const micros = (time) => `${rounded(time, 1).toLocaleString("en", { maximumFractionDigits: 1 })} µs`;

export const whole = (number) => number.toLocaleString("en", { maximumFractionDigits: 0 });

// A parameter's value; null is what a rule chooses, which may be known.
export const ruled = (value, chosen) => value !== null ? String(value)
  : (chosen ?? null) === null ? "by rule" : `by rule: ${chosen}`;

// It with its name, as in a call where it is one's own choice.
export const named = (name, value, chosen) =>
  `${name}${value === null ? " " : "="}${ruled(value, chosen)}`;
