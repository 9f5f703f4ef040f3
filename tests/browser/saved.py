"""A saved page of the explorer in the browser, without a kernel."""

from .lab import FRAME

#: Returns faults of the visible pictures: text outside of a picture or too small, and NaN.
FAULTS = """() => {
  const faults = [];
  for (const svg of document.querySelectorAll(".av-view svg")) {
    const box = svg.getBoundingClientRect();
    if (!box.width) continue;
    const isPicture = svg.getAttribute("role") === "img";
    if (isPicture && !svg.getAttribute("aria-label")) faults.push("silent");
    for (const text of svg.querySelectorAll("text")) {
      const words = text.getBoundingClientRect();
      const out = words.left < box.left - 2 || words.right > box.right + 2
        || words.top < box.top - 2 || words.bottom > box.bottom + 2;
      if (words.width && out) faults.push(`outside: ${text.textContent}`);
      const size = parseFloat(getComputedStyle(text).fontSize);
      if (size < 11) faults.push(`small: ${text.textContent}`);
    }
    for (const mark of svg.querySelectorAll("rect, circle, path, line"))
      for (const { value } of mark.attributes)
        if (/NaN|Infinity|undefined/.test(value)) faults.push(mark.outerHTML);
  }
  const text = document.querySelector(".av-view").textContent;
  if (/NaN|undefined|Infinity|null/.test(text)) faults.push(text);
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) faults.push(`scrolls: ${page.scrollWidth}`);
  return faults;
}"""


#: Opens a page with all controls, which a reader finds after the story.
AT_CONTROLS = """try {
  localStorage["accelviz group"] ??= "product";
} catch {} // an empty page has no storage"""

#: Stores the last image that the page decodes in `window.picture`, as the text of an SVG.
KEEP_PICTURE = """() => {
  const decode = HTMLImageElement.prototype.decode;
  HTMLImageElement.prototype.decode = function () {
    window.picture = decodeURIComponent(this.src.slice(this.src.indexOf(",") + 1));
    return decode.call(this);
  };
}"""


class SavedPage:
    """An open page; `errors` collects uncaught errors, console messages and requests."""

    def __init__(self, browser, path, *, story=False, **options):
        defaults = {"viewport": {"width": 848, "height": 1000}, "reduced_motion": "reduce"}
        self.page = browser.new_page(**{**defaults, **options})
        if not story:
            self.page.add_init_script(AT_CONTROLS)
        self.page.clock.install()
        self.errors = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("request", lambda request: self.errors.append(request.url))
        self.page.goto(path.as_uri())
        self.errors.remove(path.as_uri())
        self.page.wait_for_selector("[data-drawn]")

    def type(self, field, value):
        box = self.page.get_by_label(f"{field}, as a number", exact=True)
        box.fill(str(value))
        box.press("Enter")
        self.page.evaluate(FRAME)

    def text(self, selector):
        return self.page.locator(selector).first.inner_text()

    @property
    def walk(self):
        return self.page.get_by_role("slider", name="Nonzeros of row")

    def rings(self, name):
        return self.page.locator(f".av-of-{name} .av-over .av-ring").count()

    def close(self):
        assert self.errors == []
        self.page.close()

    def tab(self, name):
        self.page.get_by_role("tab", name=name).click()
        self.page.evaluate(FRAME)

    def choose(self, control, option):
        self.page.locator(f"[data-control={control}]").select_option(option)
        self.page.evaluate(FRAME)
