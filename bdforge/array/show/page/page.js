// Puts the page together, and gives it its keys.

const KEYS = [
  ["arrows", "in the array: the next tile; elsewhere ← → step through the run"], ["Home End", "start and end of the run"], ["PageUp PageDown", "100 events"],
  ["space", "play and pause"], ["[ ]", "wider and closer timeline"], ["+ - 0", "larger, smaller, all of the array"], ["Enter", "in the array: look closely at the selected tile"],
  ["f", "streams on or off"], ["w", "walk of the selected BD"], ["Esc", "select nothing"], ["?", "these keys"],
];

function toggleStreams() {
  const still = at("picture").classList.toggle("still");
  at("streams").setAttribute("aria-pressed", String(!still));
}

const does = {
  "+": () => zoom(1 / 1.3), "=": () => zoom(1 / 1.3), "-": () => zoom(1.3), 0: fit, f: toggleStreams, "?": () => at("keys").showModal(),
  Escape: () => select(null), w: () => walk && (walk.timer ? pauseWalk() : playWalk()),
};
const ofRun = {
  ArrowLeft: () => go(cursor - 1), ArrowRight: () => go(cursor + 1), Home: () => go(0), End: () => go(run.events.length), PageUp: () => go(cursor - 100),
  PageDown: () => go(cursor + 100), " ": () => play(), "[": () => closer(2), "]": () => closer(0.5),
};

function pressedKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || at("keys").open || ["INPUT", "BUTTON"].includes(event.target.tagName)) return;
  const scrolls = ["PageUp", "PageDown", "Home", "End"].includes(event.key) && event.target.closest("#text, #details");
  if (event.key === "Enter" && event.target.id === "picture" && selected) return toTile(placesOf(selected)[0]);
  const action = (run && !scrolls && ofRun[event.key]) || (design && does[event.key]);
  if (!action) return;
  event.preventDefault();
  action();
}

// Lines that are selected go to the editor around this page; its cursor's line and steps come.
function embed() {
  if (!embedded) return;
  document.body.classList.add("embedded");
  watchers.push((item, scrolls) => scrolls && parent.postMessage({ lines: linesOf(item), asked: item !== null && item.kind === "line" }, "*"));
  addEventListener("message", (event) => {
    const { line, step } = event.source === parent ? event.data : {};
    if (items.has(line)) select(next(items.get(line)), false);
    if (step && run) go(cursor + step);
  });
}

function begin() {
  const counts = ["error", "warning"].map((kind) => [kind, data.messages.filter((message) => message.kind === kind).length]);
  const told = counts.filter(([, count]) => count).map(([kind, count]) => `${count} ${kind}${count > 1 ? "s" : ""}`);
  const ended = run ? `run (emulated): ${run.fault ? "failed" : "ended"}, ${run.count} events` : "";
  at("summary").textContent = [design && `@${design.name} on ${design.array}`, told.join(", ") || "no errors found", ended].filter(Boolean).join(" · ");
  prepareRun();
  drawArray();
  writeText();
  watchers.push(writeDetails);
  if (run) go(run.fault ? run.events.length : 0);
  select(null);
  const first = data.messages.find((message) => message.kind === "error" && message.line);
  if (first) toLine(lines[first.line]);
  at("keys").append(head("Keys"), table(["key", ""], KEYS), element("form", { method: "dialog" }, element("button", {}, "Close")));
  at("help").addEventListener("click", () => at("keys").showModal());
  if (design) {
    at("zoom-in").addEventListener("click", does["+"]); at("zoom-out").addEventListener("click", does["-"]); at("zoom-fit").addEventListener("click", fit);
    at("streams").addEventListener("click", toggleStreams);
  }
  document.addEventListener("keydown", pressedKey);
  embed();
}

begin();
