// A text with numbered lines, some of which are marked.

const LINE = 17; // pixels, as in the style

export class Editor {
  constructor(box, changed, moved) {
    this.box = box;
    this.text = box.querySelector("textarea");
    this.numbers = box.querySelector(".numbers");
    this.marks = box.querySelector(".marks");
    this.count = this.wanted = 0;
    this.text.addEventListener("input", () => { this.number(); this.mark([]); changed(); });
    this.text.addEventListener("scroll", () => this.scrolled());
    for (const event of ["click", "keyup"]) this.text.addEventListener(event, () => moved(this.line));
    this.text.addEventListener("keydown", (event) => this.key(event));
  }

  get value() {
    return this.text.value;
  }

  set value(text) {
    this.text.value = text;
    this.text.scrollTop = 0;
    this.number();
    this.mark([]);
    this.scrolled();
  }

  // The line of the cursor.
  get line() {
    return this.text.value.slice(0, this.text.selectionStart).split("\n").length;
  }

  number() {
    const count = this.text.value.split("\n").length;
    if (count === this.count) return;
    this.count = count;
    this.numbers.textContent = Array.from({ length: count }, (_, index) => index + 1).join("\n");
  }

  // Mark lines: [line, kind, what is said of it].
  mark(found) {
    this.marks.replaceChildren(...found.map(([line, kind, title]) => this.band(line, kind, title)));
  }

  // Mark the lines of what is selected or runs in the array, beside those of messages.
  show(kind, lines) {
    this.marks.querySelectorAll(`.${kind}`).forEach((each) => each.remove());
    this.marks.append(...lines.map((line) => this.band(line, kind, "")));
  }

  band(line, kind, title) {
    const band = document.createElement("div");
    band.className = kind;
    band.title = title;
    band.dataset.line = line;
    band.style.top = `${(line - 1) * LINE}px`;
    return band;
  }

  scrolled() {
    const moved = `translateY(${-this.text.scrollTop}px)`;
    this.numbers.style.transform = moved;
    this.marks.style.transform = moved;
  }

  // Go to a line, of a text that is hidden when it appears.
  toLine(line, selects = false) {
    this.wanted = this.text.clientHeight ? 0 : line;
    this.text.scrollTop = (line - 1) * LINE - this.text.clientHeight / 3;
    if (!selects) return;
    const before = this.text.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1);
    this.text.focus({ preventScroll: true });
    this.text.setSelectionRange(before, before);
  }

  appear() {
    if (this.wanted) this.toLine(this.wanted);
  }

  // Tab indents; Escape before it leaves the text, as keyboards must.
  key(event) {
    if (event.key === "Tab" && !event.shiftKey && !this.leaving && !this.text.readOnly) {
      event.preventDefault();
      document.execCommand("insertText", false, "  ");
    }
    this.leaving = event.key === "Escape";
  }
}
