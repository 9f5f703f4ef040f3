// Animation of marks from their last position to the new one. It is off if the reader prefers
// reduced motion, and while a slider is dragged: the next drawing would interrupt it.

const TIME = 260; // milliseconds of an animation
const MOST = 400; // marks that are animated at most
const NAMES = ["x", "y", "width", "height", "x1", "y1", "x2", "y2"];

let lastDrawing = 0; // time of the last drawing
const prefersNoMotion = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
const marksOf = (host: Element) => host.querySelectorAll<SVGElement>("[data-m]");
const numbersOf = (mark: Element) => new Map(NAMES.filter((name) => mark.hasAttribute(name))
  .map((name) => [name, Number(mark.getAttribute(name))]));

/** Record the positions of marks; the function returned animates them after the next drawing. */
export function recordPositions(host: Element) {
  const now = performance.now(), isDragging = now - lastDrawing < 2 * TIME;
  lastDrawing = now;
  if (isDragging || prefersNoMotion()) return () => {};
  const before = new Map<string, Map<string, number>>();
  for (const mark of marksOf(host)) before.set(mark.dataset.m!, numbersOf(mark));
  return () => before.size && animate(host, before);
}

function animate(host: Element, before: Map<string, Map<string, number>>) {
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
