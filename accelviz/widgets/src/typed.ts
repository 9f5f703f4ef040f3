// Numbers as people type them: "0,0625", "1/16", "12 %", "3.4 µs", "2x", "1 024", "2^-10", "six".

export const NO_NUMBER = "That is no number. Expected: a number, such as 12, 0.5 or 1/16.";

const PLAIN = String.raw`(?:\d[\d.,'_ ]*|[.,]\d+)`;
const POWER = String.raw`(?: *(?:\^|\*\*) *([+-]?\d+))`;
const TYPED = new RegExp(
  `^([+-]? *)(${PLAIN})(?:e([+-]?\\d+)| *[x*] *10${POWER}|${POWER}| */ *(${PLAIN}))?(.*)$`, "i");
const ABOUT = new RegExp(String.raw`^(?:~|≈|(?:[a-z_]+ ?)?[=:]|`
  + String.raw`(?:about|around|roughly|approximately|approx\.?|circa|ca\.)(?= ))\s*`, "i");
const WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
  "ten", "eleven", "twelve"];
const FRACTIONS: Record<string, string> = { half: "1/2", third: "1/3", quarter: "1/4" };
/** The units of time of each number of seconds, without the s of a plural. */
const SECONDS: [number, string[]][] = [[1, ["s", "sec", "second"]],
  [1e-3, ["ms", "msec", "millisecond"]], [1e-6, ["us", "μs", "usec", "microsec", "microsecond"]],
  [1e-9, ["ns", "nsec", "nanosecond"]]];

/** The seconds of a unit of time; undefined if the name is another one. */
const secondsOf = (name: string) =>
  SECONDS.find(([, names]) => names.some((one) => name === one || name === `${one}s`))?.[0];

/** The numbers that digits with separators can stand for: none, one, or two. */
function readings(digits: string): number[] {
  const spaced = /^\d{1,3}([ '_])\d{3}(?:\1\d{3})*(?:[.,]\d*)?$/.test(digits);
  const text = spaced ? digits.replace(/[ '_]/g, "") : digits;
  if (/^[1-9]\d{0,2},\d{3}$/.test(text) && !spaced)
    return [Number(text.replace(",", "")), Number(text.replace(",", "."))];
  if (/^(?:\d+[.,]?\d*|[.,]\d+)$/.test(text)) return [Number(text.replace(",", "."))];
  if (/^\d{1,3}(?:,\d{3})+(?:\.\d*)?$/.test(text)) return [Number(text.replaceAll(",", ""))];
  if (/^\d{1,3}(?:\.\d{3})+(?:,\d*)?$/.test(text))
    return [Number(text.replaceAll(".", "").replace(",", "."))];
  return [];
}

/** The factor from a typed unit to that of the answer; undefined if the unit fits neither. */
function unitFactor(typed: string, unit: string, question: string, isPercent: boolean) {
  const name = typed.toLowerCase(), wanted = unit.toLowerCase();
  if (!name || name === wanted) return 1;
  if (/^(?:%|pct|per ?cent)(?: of .*)?$/.test(name)) return isPercent ? 1 : unit ? undefined : 0.01;
  if (/^(?:x|times(?: as [a-z]+| faster| slower| longer)?|-? ?fold)$/.test(name))
    return ["", "times"].includes(unit) ? 1 : undefined;
  const target = secondsOf(wanted), seconds = secondsOf(name);
  if (target) return seconds ? seconds / target : undefined;
  const words = question.toLowerCase().match(/[a-zμ]+/g) ?? [];
  const isNamed = words.some((word) => [word, `${word}s`].includes(name) || word === `${name}s`);
  return isNamed && !unit ? 1 : undefined;
}

const twoNumbers = (text: string, numbers: number[], unit = "") =>
  `${text} can be ${numbers.map((one) => `${Number(one.toPrecision(6))}${unit}`).join(" or ")}. `
  + "Type one of these.";

/** Digits in place of a number's word at the beginning: "six warps", "a third". */
const wordsAsDigits = (text: string) => text
  .replace(/^(?:(?:a|one) )?(half|third|quarter)\b/i, (_, word) => FRACTIONS[word.toLowerCase()])
  .replace(/^[a-z]+\b/i, (word) => {
    const number = WORDS.indexOf(word.toLowerCase());
    return number < 0 ? word : String(number);
  });

/** Parse a typed number, which may have a unit; a text is what to tell its author instead. */
export function parseNumber(typed: string, unit: string, question = ""): number | string {
  const plain = typed.replace(/[⁻⁰¹²³⁴-⁹]+/g, "^$&").replace(/[¼-¾⅐-⅞]/g, " $&").normalize("NFKC")
    .replaceAll("−", "-").replaceAll("⁄", "/").replaceAll(/[×·]/g, "x")
    .replace(/\s+/g, " ").trim().replace(ABOUT, "").replace(/ ?[!?]+$/, "")
    .replace(/^\(([^()]*)\)(?= ?[^\d]*$)/, "$1").replace(/^x ?(?=\d)/i, "");
  const text = wordsAsDigits(plain);
  const match = TYPED.exec(text);
  if (!match) return NO_NUMBER;
  const [, sign, digits, e, tens, power, divisor, tail] = match, own = digits.trim();
  const isPercent = unit === "%" || (!unit && /percent|%/.test(question));
  const factor = unitFactor(tail.trim(), unit, question, isPercent);
  const mixed = divisor ? /^(\d+) (\d+)$/.exec(own) : null;
  let numbers = readings(own);
  if (mixed && !numbers.length) numbers = [Number(mixed[1]) * Number(divisor) + Number(mixed[2])];
  const divisors = divisor ? readings(divisor.trim()) : [1];
  for (const [part, read] of [[own, numbers], [divisor?.trim(), divisors]] as const)
    if (read.length > 1) return twoNumbers(part, read);
  if (!numbers.length || !divisors.length) return NO_NUMBER;
  if (/^(?:-|–|to|or|and|bis|\.\.) ?\d/i.test(tail.trim()))
    return "These are two numbers. Expected: one.";
  if (factor === undefined)
    return `The unit "${tail.trim()}" is not clear. Expected: a number${unit && ` in ${unit}`}.`;
  const raised = power ? numbers[0] ** Number(power) : numbers[0] / divisors[0];
  const value = Number(`${raised}e${e ?? tens ?? 0}`) * factor * (sign.trim() === "-" ? -1 : 1);
  if (!Number.isFinite(value)) return NO_NUMBER;
  const isShare = divisor ? Math.abs(value) <= 1 : value !== 0 && Math.abs(value) < 1;
  if (isPercent && isShare && !tail.trim())
    return twoNumbers(text, [value, 100 * value], " %");
  return value;
}
