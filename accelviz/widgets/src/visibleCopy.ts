// Keeps a line of text visible while the controls that change it are used. If it is scrolled out of
// sight, a copy is shown at the bottom of the screen, or at the top where it would cover a control.

/** Show the copy in `panel` of the line that `findLine` returns; call `update` if it changes. */
export function keepVisible(
  panel: Element, controls: Element, bottom: Element, findLine: () => HTMLElement | null,
) {
  const copy = Object.assign(document.createElement("div"),
    { className: "av-copied", hidden: true, ariaHidden: "true" });
  const top = Object.assign(document.createElement("div"), { className: "av-above" });
  panel.prepend(top);
  bottom.append(copy);

  function update() {
    const usedControls =
      [...controls.querySelectorAll(":scope .av-control:is(:focus-within, :hover)")];
    const line = usedControls.length ? findLine() : null;
    copy.hidden = !line?.clientHeight || isVisible(line);
    if (!line || copy.hidden) return;
    if (copy.textContent !== line.textContent) copy.textContent = line.textContent;
    bottom.append(copy);
    if (usedControls.some((control) => overlap(copy, control))) top.append(copy);
  }

  const scheduleUpdate = () => requestAnimationFrame(update);
  for (const kind of ["focusin", "focusout", "pointerover", "pointerleave"])
    controls.addEventListener(kind, scheduleUpdate);
  document.addEventListener("scroll", update, { capture: true, passive: true });
  return { update };
}

/** Whether the first and last line of a text are on the screen and not covered. */
function isVisible(words: Element) {
  const { left, top, bottom } = words.getBoundingClientRect();
  return [top + 9, bottom - 9].every((y) =>
    words.contains(document.elementFromPoint(left + 9, y) ?? document));
}

function overlap(first: Element, second: Element) {
  const [a, b] = [first, second].map((box) => box.getBoundingClientRect());
  return a.top < b.bottom && b.top < a.bottom;
}
