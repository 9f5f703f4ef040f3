// The theme of a panel, light or dark: that of the page around it, whoever sets it. JupyterLab, VS
// Code and Colab each have a way of their own, but all of them colour the page's background.

/** Relative luminance of an opaque CSS colour, 0 to 1; null if it is transparent. */
function luminanceOf(colour: string) {
  const [red = 0, green = 0, blue = 0, alpha = 1] = colour.match(/[\d.]+/g)?.map(Number) ?? [];
  if (alpha < 0.5) return null;
  return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
}

/** The theme by the nearest background around an element, else by the browser's setting. */
function themeAround(host: Element) {
  for (let box = host.parentElement; box; box = box.parentElement) {
    const luminance = luminanceOf(getComputedStyle(box).backgroundColor);
    if (luminance !== null) return luminance < 0.5 ? "dark" : "light";
  }
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Give a panel the theme around it, also after a change; `changed` is called then. */
export function followTheme(panel: HTMLElement, changed: () => void = () => {}) {
  const update = () => {
    const theme = themeAround(panel);
    if (panel.style.colorScheme === theme) return;
    panel.style.colorScheme = theme;
    changed();
  };
  const later = () => requestAnimationFrame(update);
  const observer = new MutationObserver(later);
  for (const root of [document.documentElement, document.body])
    observer.observe(root, { attributes: true });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
  update();
}
