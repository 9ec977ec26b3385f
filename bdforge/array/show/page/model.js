// What the page knows: the data, what stands at which line of the text, and what is selected.

const data = JSON.parse(document.getElementById("data").textContent);
const design = data.design, run = data.run;
const embedded = parent !== window; // in a page with an editor, which has the text and the messages
const at = (id) => document.getElementById(id);

// Elements are made of texts and children only, never of markup: names in a design may hold any character.
function element(tag, attributes, ...children) {
  const svg = ["svg", "g", "rect", "path", "circle", "text", "title", "line"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const tiles = new Map((design ? design.tiles : []).map((tile) => [tile.at.join(), tile]));
const tileName = (tile) => `${tile.kind} (${tile.at[0]}, ${tile.at[1]})`;

const items = new Map(); // line -> what stands there
function stands(line, item) {
  if (!line) return;
  if (!items.has(line)) items.set(line, []);
  items.get(line).push(item);
}
if (design) {
  design.transfers.forEach((bd, index) => stands(bd.line, { kind: "transfer", index }));
  for (const tile of design.tiles) {
    const place = tile.at.join();
    if (tile.memory) tile.memory.spans.forEach((span, index) => stands(span[4], { kind: "buffer", place, index }));
    tile.locks.forEach((lock, index) => stands(lock[3], { kind: "lock", place, index }));
    if (tile.core) {
      for (const call of tile.core.calls) stands(call.line, { kind: "tile", place });
      stands(tile.core.line, { kind: "tile", place });
    }
    stands(tile.line, { kind: "tile", place });
  }
  design.streams.forEach((stream, index) => stream.lines.forEach((line) => stands(line, { kind: "stream", index })));
}

function linesOf(item) {
  if (!item) return [];
  if (item.kind === "line") return [item.line];
  if (item.kind === "stream") return design.streams[item.index].lines;
  if (item.kind === "transfer") return [design.transfers[item.index].line];
  const tile = tiles.get(item.place);
  if (item.kind === "buffer") return [tile.memory.spans[item.index][4] || (tile.core && tile.core.line)].filter(Boolean);
  if (item.kind === "lock") return [tile.locks[item.index][3]];
  return [tile.line];
}

// The tiles that a selection concerns.
function placesOf(item) {
  if (!item || item.kind === "line") return [];
  if (item.kind === "transfer") return [design.transfers[item.index].tile.join()];
  if (item.kind === "stream") {
    const stream = design.streams[item.index];
    return [stream.from, ...stream.to].map((end) => end.slice(0, 2).join());
  }
  return [item.place];
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const watchers = [];
let selected = null;
function select(item, scrolls = true) {
  selected = item;
  for (const watcher of watchers) watcher(item, scrolls);
}

const link = (text, item) => element("a", { role: "button", tabindex: 0, onclick: () => select(item), onkeydown: pressed(() => select(item)) }, text);
function pressed(action) {
  return (event) => { if (event.key === "Enter") { event.preventDefault(); event.stopPropagation(); action(); } };
}

function amount(bytes) {
  return bytes < 1024 ? `${bytes} B` : `${+(bytes / 1024).toPrecision(4)} KiB`;
}

// A text with its places `file:line:column` as links to the lines.
function linked(text) {
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(/:(\d+):\d+/g)) {
    parts.push(text.slice(from, found.index));
    parts.push(link(found[0], { kind: "line", line: +found[1] }));
    from = found.index + found[0].length;
  }
  return [...parts, text.slice(from)];
}
