// What has moved since the last drawing glides there, unless the reader wants no motion. While a
// slider is dragged nothing glides: the next picture would come before it has arrived.

const TIME = 260; // milliseconds
const MOST = 400; // marks that are moved
const NAMES = ["x", "y", "width", "height", "x1", "y1", "x2", "y2"];

let last = 0; // when something was drawn
const still = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
const marksOf = (host: Element) => host.querySelectorAll<SVGElement>("[data-m]");
const numbersOf = (mark: Element) => new Map(NAMES.filter((name) => mark.hasAttribute(name))
  .map((name) => [name, Number(mark.getAttribute(name))]));

/** Note where the marks of a picture are; call what is returned once it has been drawn again. */
export function moves(host: Element) {
  const now = performance.now(), dragged = now - last < 2 * TIME;
  last = now;
  if (dragged || still()) return () => {};
  const before = new Map<string, Map<string, number>>();
  for (const mark of marksOf(host)) before.set(mark.dataset.m!, numbersOf(mark));
  return () => before.size && glide(host, before);
}

function glide(host: Element, before: Map<string, Map<string, number>>) {
  const moved: [SVGElement, string, number, number][] = [];
  for (const mark of marksOf(host)) {
    for (const [name, to] of numbersOf(mark)) {
      const from = before.get(mark.dataset.m!)?.get(name);
      if (from !== undefined && Math.abs(from - to) > 0.5) moved.push([mark, name, from, to]);
    }
    if (moved.length > MOST) return;
  }
  if (!moved.length) return;
  const start = performance.now();
  const frame = (now: number) => {
    const eased = 1 - (1 - Math.min(Math.max((now - start) / TIME, 0), 1)) ** 3;
    for (const [mark, name, from, to] of moved)
      mark.setAttribute(name, String(from + (to - from) * eased));
    if (eased < 1 && moved.some(([mark]) => mark.isConnected)) requestAnimationFrame(frame);
  };
  frame(start);
}
