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

/** Marks on their way, and the attributes that they end at. */
const running = new Map<SVGElement, Map<string, number>>();

/** End the animations in `host` at once: a drawing may keep its marks. */
function finish(host: Element) {
  for (const [mark, ends] of running) {
    if (mark.isConnected && !host.contains(mark)) continue;
    for (const [name, to] of ends) mark.setAttribute(name, String(to));
    running.delete(mark);
  }
}

/** Record the positions of marks; the function returned animates them after the next drawing. */
export function recordPositions(host: Element) {
  const now = performance.now(), isDragging = now - lastDrawing < 2 * TIME;
  lastDrawing = now;
  const before = new Map<string, Map<string, number>>();
  if (!isDragging && !prefersNoMotion())
    for (const mark of marksOf(host)) before.set(mark.dataset.m!, numbersOf(mark));
  finish(host);
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
  for (const [mark, name, , to] of moved)
    running.set(mark, (running.get(mark) ?? new Map<string, number>()).set(name, to));
  const start = performance.now();
  const frame = (now: number) => {
    const left = moved.filter(([mark]) => running.has(mark) && mark.isConnected);
    const eased = 1 - (1 - Math.min(Math.max((now - start) / TIME, 0), 1)) ** 3;
    for (const [mark, name, from, to] of left)
      mark.setAttribute(name, String(from + (to - from) * eased));
    if (left.length && eased < 1) requestAnimationFrame(frame);
    else for (const [mark] of moved) running.delete(mark);
  };
  frame(start);
}
