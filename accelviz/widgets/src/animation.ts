// Animation of marks from their last position to the new one, and of pictures that grow out of a
// mark. Both are off if the reader prefers reduced motion, and the first while a slider is dragged:
// the next drawing would interrupt it.

const TIME = 260; // milliseconds of an animation
const MOST = 400; // marks that are animated at most
const ZOOM_TIME = 650; // milliseconds in which a mark grows into a picture
const SMALLEST = 1 / 12; // of a picture: the least part from which the next one grows
const NAMES = ["x", "y", "width", "height", "x1", "y1", "x2", "y2"];

let lastDrawing = 0; // time of the last drawing
export const prefersNoMotion = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
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

/** Copy a picture, with what its canvases show. */
function copyOf(picture: Element) {
  const copy = picture.cloneNode(true) as HTMLElement;
  const drawn = picture.querySelectorAll("canvas");
  copy.querySelectorAll("canvas").forEach((canvas, i) =>
    drawn[i].width && drawn[i].height && canvas.getContext("2d")!.drawImage(drawn[i], 0, 0));
  return copy;
}

/** Keep a copy of the picture in `stage`. The function returned, called after the next drawing,
 *  lets the new picture grow out of a part of the old one or, `outward`, the old one shrink into a
 *  part of the new one. The part is a box on the screen. */
export function startZoom(stage: HTMLElement) {
  const picture = stage.firstElementChild!, { left, top, width, height } =
    stage.getBoundingClientRect();
  stage.querySelector(".av-zoomed")?.remove();
  for (const animation of stage.getAnimations({ subtree: true })) animation.cancel();
  if (prefersNoMotion() || !width || !height) return () => {};
  const copy = copyOf(picture);
  copy.classList.add("av-zoomed");
  copy.inert = true;
  return (part: DOMRect, outward: boolean) => {
    const whole = outward ? stage.getBoundingClientRect() : { left, top, width, height };
    const [wide, high] = [part.width / whole.width, part.height / whole.height]
      .map((share) => Math.min(Math.max(share, SMALLEST), 1));
    const x = part.left + part.width / 2 - whole.left - (wide * whole.width) / 2;
    const y = part.top + part.height / 2 - whole.top - (high * whole.height) / 2;
    const small = `translate(${x}px, ${y}px) scale(${wide}, ${high})`;
    const large = `scale(${1 / wide}, ${1 / high}) translate(${-x}px, ${-y}px)`;
    const timing = { duration: ZOOM_TIME, easing: "cubic-bezier(0.3, 0, 0.2, 1)" };
    stage.append(copy);
    picture.animate([{ transform: outward ? large : small, opacity: 0 },
      { opacity: 0.6, offset: 0.5 }, { transform: "none", opacity: 1 }], timing);
    copy.animate([{ transform: "none", opacity: 1 }, { opacity: 0.6, offset: 0.5 },
      { transform: outward ? small : large, opacity: 0 }], { ...timing, fill: "forwards" })
      .onfinish = () => copy.remove();
  };
}
