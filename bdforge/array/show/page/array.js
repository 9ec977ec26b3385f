// The array: tiles with memory, locks and ports, streams on their routes. Row 0 is at the bottom, as in pictures.

const LOCKS = 0.2; // share of a tile's panel that its locks take
const shown = { tiles: new Map(), buffers: new Map(), locks: new Map(), ports: new Map(), states: new Map(), streams: [] };
const view = { x: 0, y: 0, width: 1, height: 1 };
const flip = (y) => design.rows[1] - y;

function drawArray() {
  const picture = at("picture");
  if (!design) {
    at("array").replaceChildren(element("p", { style: "padding: 12px" }, "Nothing is drawn of a design that cannot be read, placed or routed: the messages beside tell why."));
    return;
  }
  const grid = element("g", {});
  for (let row = design.rows[0]; row < design.rows[1]; row++)
    for (let column = design.columns[0]; column < design.columns[1]; column++) grid.append(drawTile(column, row));
  grid.append(...design.cascades.map(drawCascade));
  design.streams.forEach((stream, index) => grid.append(drawStream(stream, index)));
  picture.append(grid);
  for (const [color, label] of design.legend) at("legend").append(element("span", {}, element("i", { style: `background: ${color}` }), label));
  watchers.push(markArray);
  moves(picture);
  fit();
}

function drawTile(column, row) {
  const place = `${column},${row}`, tile = tiles.get(place), kind = design.kinds[place], x = column, y = flip(row + 1);
  const group = element("g", { class: `tile ${kind} ${tile ? "" : "unused"}`, "data-place": place });
  group.append(element("rect", { class: "box", x: x + 0.035, y: y + 0.035, width: 0.93, height: 0.93, rx: 0.03 }));
  group.append(element("text", { x: x + 0.07, y: y + 0.945, "font-size": 0.075 }, `${kind} ${column},${row}`));
  if (!tile) return group;
  group.setAttribute("role", "button");
  group.setAttribute("aria-label", tileName(tile));
  group.addEventListener("click", () => { if (!dragged) select({ kind: "tile", place }, true); });
  shown.tiles.set(place, group);
  const [left, bottom, right, top] = design.panel, edge = LOCKS * (top - bottom);
  if (tile.memory) drawMemory(group, tile, x + left, flip(row + top) + edge, right - left, top - bottom - edge);
  drawLocks(group, tile, x + left, flip(row + top), right - left, edge - 0.01);
  drawPorts(group, tile, x, row);
  if (tile.core) {
    const state = element("circle", { class: "state", cx: x + 0.9, cy: y + 0.915, r: 0.03 }, element("title", {}, `core: ${tile.core.kernels.join(", ") || "a body without calls"}`));
    shown.states.set(place, state);
    group.append(state);
  }
  return group;
}

function drawMemory(group, tile, x, y, width, height) {
  const { limit, used, spans } = tile.memory, scale = height / limit, place = tile.at.join(), row = tile.at[1];
  group.append(element("rect", { class: "memory", x, y, width, height }));
  const named = (name, index, at, from) => { const label = element("text", { class: "small named", x: at, y: from, "font-size": 0.034 }, short(name, width)); label.addEventListener("click", choose(index)); group.append(label); };
  const choose = (index) => (event) => { event.stopPropagation(); if (!dragged) select({ kind: "buffer", place, index }); };
  let free = y + height - Math.max(0, ...spans.map((span) => span[1])) * scale - 0.015; // above the last buffer: names of thin ones
  spans.forEach(([start, end, name], index) => {
    const stack = spans[index][4] === null, tall = Math.max((end - start) * scale, 0.006), from = y + height - start * scale - tall;
    const bar = element("rect", { class: `buffer ${stack ? "stack" : ""} ${index % 2 ? "odd" : ""}`, x, y: from, width, height: tall }, element("title", {}, `${name}, ${amount(end - start)} at 0x${start.toString(16)}`));
    bar.addEventListener("click", choose(index));
    shown.buffers.set(`${place},${index}`, bar);
    group.append(bar);
    if (tall > 0.035) named(name, index, x + 0.01, from + tall / 2 + 0.012);
    else if (!stack && free > y + 0.03) { named(name, index, x + 0.01, free); free -= 0.04; }
  });
  group.append(element("text", { x: tile.at[0] + (tile.core ? 0.84 : 0.91), y: flip(row) - 0.06, "font-size": 0.045, "text-anchor": "end", opacity: 0.75 }, `${+(used / 1024).toPrecision(3)} of ${limit / 1024} KiB`));
}

const short = (name, width) => { const most = Math.floor(width / 0.019); return name.length > most ? `${name.slice(0, most - 1)}…` : name; };

function drawLocks(group, tile, x, y, width, height) {
  const count = tile.locks.length, place = tile.at.join();
  if (!count) return;
  let columns = Math.max(4, Math.ceil(Math.sqrt((count * width) / height)));
  const side = Math.min(width / columns, height / Math.ceil(count / columns), 0.09);
  columns = Math.floor(width / side + 1e-6);
  tile.locks.forEach(([id, name, init], index) => {
    const left = x + (index % columns) * side, top = y + Math.floor(index / columns) * side;
    const cell = element("rect", { class: "lock", x: left, y: top, width: side * 0.88, height: side * 0.88, rx: side * 0.15 }, element("title", {}, `lock ${id} ${name}`));
    const value = element("text", { x: left + side * 0.44, y: top + side * 0.7, "font-size": side * 0.75, "text-anchor": "middle" });
    cell.addEventListener("click", (event) => { event.stopPropagation(); if (!dragged) select({ kind: "lock", place, index }); });
    shown.locks.set(`${place},${index}`, { cell, value });
    showLock(`${place},${index}`, init, false);
    group.append(cell, value);
  });
}

function showLock(key, value, wanted) {
  const lock = shown.locks.get(key);
  lock.value.textContent = value;
  lock.cell.classList.toggle("set", value > 0);
  lock.cell.classList.toggle("wanted", wanted);
}

function drawPorts(group, tile, x, row) {
  const [, bottom, right, top] = design.panel, height = (top - bottom) / tile.ports.length, place = tile.at.join();
  tile.ports.forEach(([way, bundle, channel, color], index) => {
    const label = bundle === "DMA" ? `${way === "in" ? "S2MM" : "MM2S"} ${channel}` : `${bundle} ${channel}`;
    const y = flip(row + top - height * (index + 0.08)), left = x + right + 0.01, width = design.portsRight - right - 0.01;
    const box = element("rect", { class: "port", x: left, y, width, height: height * 0.84, fill: color || "var(--free)", stroke: color || "var(--idle)" }, element("title", {}, label));
    shown.ports.set(`${place},${label}`, box);
    group.append(box, element("text", { class: "small", x: left + width / 2, y: y + height * 0.42 + 0.01, "font-size": 0.03, "text-anchor": "middle", style: `fill: ${color ? "#fff" : "var(--faint)"}` }, label));
  });
}

const path = (points) => points.map(([x, y], index) => `${index ? "L" : "M"}${x} ${flip(y).toFixed(4)}`).join("");

function drawStream(stream, index) {
  const way = stream.ways.map(path).join(""), [color, role] = design.legend[stream.color];
  const line = element("path", { class: `stream ${stream.packet === null ? "" : "packets"}`, d: way, stroke: color });
  const reach = element("path", { class: "reach", d: way }, element("title", {}, role));
  reach.addEventListener("click", () => { if (!dragged) select({ kind: "stream", index }); });
  shown.streams.push(line);
  return element("g", {}, line, element("path", { class: "head", d: stream.ways.map(arrow).join(""), fill: color }), reach);
}

// The head of an arrow at the end of a way.
function arrow(points) {
  const [[x0, y0], [x, y]] = points.slice(-2), along = [Math.sign(x - x0) * 0.035, Math.sign(y0 - y) * 0.035], end = [x, flip(y)];
  const side = (sign) => `${end[0] - along[0] + sign * along[1] * 0.5} ${end[1] - along[1] + sign * along[0] * 0.5}`;
  return `M${end[0]} ${end[1]}L${side(1)}L${side(-1)}Z`;
}

function drawCascade([from, to]) {
  const middle = ([column, row]) => [column + 0.5, flip(row + 0.5)], [a, b] = [middle(from), middle(to)];
  const part = (share) => a.map((value, axis) => value + (b[axis] - value) * share);
  const [start, end] = [part(0.4), part(0.6)];
  return element("line", { class: "cascade", x1: start[0], y1: start[1], x2: end[0], y2: end[1] }, element("title", {}, "cascade"));
}

function markArray(item) {
  document.querySelectorAll("#picture .on").forEach((each) => each.classList.remove("on"));
  at("picture").classList.toggle("dim", Boolean(item && item.kind === "stream"));
  for (const place of placesOf(item)) if (shown.tiles.has(place)) shown.tiles.get(place).classList.add("on");
  if (!item) return;
  if (item.kind === "stream") shown.streams[item.index].classList.add("on");
  if (item.kind === "buffer") shown.buffers.get(`${item.place},${item.index}`).classList.add("on");
  if (item.kind === "lock") shown.locks.get(`${item.place},${item.index}`).cell.classList.add("on");
}

function look() {
  const picture = at("picture");
  picture.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
  const side = Math.min(picture.clientWidth / view.width, picture.clientHeight / view.height);
  picture.classList.toggle("near", side > 190); // below that, names are no letters
}

function fit() {
  view.x = design.columns[0]; view.y = 0;
  view.width = design.columns[1] - design.columns[0]; view.height = design.rows[1] - design.rows[0];
  look();
}

function zoom(factor, x = view.x + view.width / 2, y = view.y + view.height / 2) {
  view.x = x - (x - view.x) * factor; view.y = y - (y - view.y) * factor;
  view.width *= factor; view.height *= factor;
  look();
}

function toTile(place) {
  const [column, row] = place.split(",").map(Number);
  Object.assign(view, { x: column - 0.05, y: flip(row + 1) - 0.05, width: 1.1, height: 1.1 });
  look();
}

let dragged = false;
function moves(picture) {
  let from = null;
  const point = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
  picture.addEventListener("wheel", (event) => { event.preventDefault(); const p = point(event); zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, p.x, p.y); }, { passive: false });
  picture.addEventListener("pointerdown", (event) => { from = point(event); dragged = false; });
  picture.addEventListener("pointermove", (event) => {
    if (!from || !event.buttons) return;
    const p = point(event);
    if (!dragged && Math.hypot(p.x - from.x, p.y - from.y) < view.width / 100) return;
    dragged = true; view.x += from.x - p.x; view.y += from.y - p.y;
    look();
  });
  picture.addEventListener("pointerup", () => { from = null; });
  picture.addEventListener("dblclick", (event) => { const tile = event.target.closest(".tile"); if (tile) toTile(tile.dataset.place); });
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault(); event.stopPropagation();
    neighbour(step);
  });
  new ResizeObserver(look).observe(picture);
}

// The next tile in a direction that the design uses; the first one where none is selected.
function neighbour([right, up]) {
  const [place] = placesOf(selected);
  if (!place) return select({ kind: "tile", place: [...tiles.keys()][0] });
  let [column, row] = place.split(",").map(Number);
  for (let step = 0; step < 64; step++) {
    column += right; row += up;
    if (tiles.has(`${column},${row}`)) return select({ kind: "tile", place: `${column},${row}` });
  }
}
