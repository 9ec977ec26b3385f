// What is said of a design below its text, as the command line says it; places in it lead to their lines.

export class Messages {
  constructor(box, toLine) {
    this.box = box;
    this.toLine = toLine;
  }

  clear() {
    this.box.replaceChildren();
  }

  say(kind, text) {
    const said = document.createElement("div");
    said.className = kind;
    said.append(...this.linked(text));
    this.box.append(said);
  }

  show({ messages, fault, said, state }) {
    this.clear();
    for (const { kind, text } of messages) this.say(kind, `${kind}: ${text}`);
    if (fault) this.say("error", fault);
    if (said) this.say(state, said);
  }

  linked(text) {
    const parts = [];
    let from = 0;
    for (const found of text.matchAll(/:(\d+):\d+/g)) {
      const link = document.createElement("a");
      link.textContent = found[0];
      link.tabIndex = 0;
      link.setAttribute("role", "button");
      link.addEventListener("click", () => this.toLine(+found[1]));
      link.addEventListener("keydown", (event) => { if (event.key === "Enter") this.toLine(+found[1]); });
      parts.push(text.slice(from, found.index), link);
      from = found.index + found[0].length;
    }
    return [...parts, text.slice(from)];
  }
}
