// What has moved since the last drawing glides there, unless the reader wants no motion. While a
// slider is dragged nothing glides: the next picture would come before it has arrived.
const TIME = 260; // milliseconds
const MOST = 400; // marks that are moved
const NAMES = ["x", "y", "width", "height", "x1", "y1", "x2", "y2"];

let last = 0; // when something was drawn
const still = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
const numbers = (element) =>
  NAMES.filter((name) => element.hasAttribute(name)).map((name) => [name, Number(element.getAttribute(name))]);

/** Note where the marks of a picture are; call what is returned once it has been drawn again. */
export function moves(host) {
  const now = performance.now();
  const dragged = now - last < 2 * TIME;
  last = now;
  if (dragged || still()) return () => {};
  const before = new Map();
  for (const mark of host.querySelectorAll("[data-m]")) before.set(mark.dataset.m, new Map(numbers(mark)));
  return () => before.size && glide(host, before);
}

function glide(host, before) {
  const moved = [];
  for (const mark of host.querySelectorAll("[data-m]")) {
    const old = before.get(mark.dataset.m);
    if (!old) continue;
    const changed = numbers(mark).filter(([name, value]) => old.has(name) && Math.abs(old.get(name) - value) > 0.5);
    for (const [name, value] of changed) moved.push([mark, name, old.get(name), value]);
    if (moved.length > MOST) return;
  }
  if (!moved.length) return;
  const start = performance.now();
  const frame = (now) => {
    if (!moved[0][0].isConnected) return;
    const share = Math.min(Math.max((now - start) / TIME, 0), 1);
    const eased = 1 - (1 - share) ** 3;
    for (const [mark, name, from, to] of moved) mark.setAttribute(name, from + (to - from) * eased);
    if (share < 1) requestAnimationFrame(frame);
  };
  frame(start);
}
