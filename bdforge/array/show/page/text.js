// The MLIR beside the array: lines that lead to what they make, and messages of the checks at theirs.

const lines = [];
function writeText() {
  const box = at("text"), told = new Map();
  for (const message of data.messages) {
    const line = message.line || 0;
    told.set(line, [...(told.get(line) || []), message]);
  }
  const all = document.createDocumentFragment();
  const tell = (message) => all.append(element("div", { class: `told ${message.kind}` }, `${message.kind}: `, ...linked(message.text)));
  (told.get(0) || []).forEach(tell);
  data.text.split("\n").forEach((text, index) => {
    const number = index + 1, messages = told.get(number) || [];
    const kind = messages.some((message) => message.kind === "error") ? "error" : messages.length ? "warning" : "";
    const line = element("div", { class: `line ${items.has(number) ? "has" : ""} ${kind}`, "data-line": number }, element("b", {}, String(number)), text);
    lines[number] = line;
    all.append(line);
    messages.forEach(tell);
  });
  box.append(all);
  box.addEventListener("click", (event) => {
    const line = event.target.closest(".line");
    if (line && items.has(+line.dataset.line)) select(next(items.get(+line.dataset.line)), false);
  });
  watchers.push(markLines);
}

// Of several things at a line, the one behind that which is selected.
function next(found) {
  const place = found.findIndex((item) => same(item, selected));
  return found[(place + 1) % found.length];
}

let marked = [];
function markLines(item, scrolls) {
  marked.forEach((line) => line.classList.remove("on"));
  marked = linesOf(item).map((line) => lines[line]).filter(Boolean);
  marked.forEach((line) => line.classList.add("on"));
  if (scrolls && marked.length) toLine(marked[0]);
}

function toLine(line) {
  const box = at("text");
  box.scrollTop += line.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
}

let running = null;
function markRunning(number) {
  if (running) running.classList.remove("now");
  running = lines[number] || null;
  if (running) running.classList.add("now");
  if (embedded) parent.postMessage({ runs: number }, "*");
}
