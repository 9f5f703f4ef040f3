// The theme of a panel, light or dark: that of the page around it, whoever sets it. JupyterLab and
// Colab colour the page's background. VS Code colours the text, on a transparent page.

const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })!;

/** Luminance of an opaque CSS colour in any notation, 0 to 1; null if it is transparent. */
function luminanceOf(colour: string) {
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
  return alpha < 128 ? null : (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
}

/** The theme by the nearest background around an element, else by the colour of its text. */
function themeAround(host: Element) {
  for (let box = host.parentElement; box; box = box.parentElement) {
    const luminance = luminanceOf(getComputedStyle(box).backgroundColor);
    if (luminance !== null) return luminance < 0.5 ? "dark" : "light";
  }
  const text = luminanceOf(getComputedStyle(host.parentElement ?? document.body).color) ?? 0;
  return text > 0.5 ? "dark" : "light";
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
