// What is selected, in words and tables.

function writeDetails(item) {
  const box = at("details"), from = box.scrollTop, before = box.dataset.key || "";
  stopWalk();
  box.replaceChildren(...(item ? DETAILS[item.kind](item) : overview()));
  box.dataset.key = JSON.stringify(item);
  box.scrollTop = before === box.dataset.key ? from : 0;
}

const DETAILS = { tile: tileDetails, buffer: bufferDetails, lock: lockDetails, stream: streamDetails, transfer: transferDetails, line: lineDetails };
const head = (text) => element("h2", {}, text);
const part = (text, table) => [element("h3", {}, text), table];
const fact = (...children) => element("div", {}, ...children);
const atLine = (line) => (line ? link(`line ${line}`, { kind: "line", line }) : element("span", { class: "faint" }, "no line"));

// A table of rows; heads that begin with > are over numbers.
function table(heads, rows) {
  const cls = (index) => (heads[index].startsWith(">") ? "number" : null);
  const row = (cells, tag) => element("tr", {}, ...cells.map((cell, index) => element(tag, { class: cls(index) }, ...(Array.isArray(cell) ? cell : [String(cell).length || cell instanceof Node ? cell : "–"]))));
  return element("table", {}, row(heads.map((text) => text.replace(/^>/, "")), "th"), ...rows.map((cells) => row(cells, "td")));
}

function overview() {
  const errors = embedded ? [] : data.messages.filter((message) => message.kind === "error"), found = [];
  if (run && run.fault && !embedded) found.push(head("The run failed"), element("pre", { class: "fault" }, ...linked(run.fault)));
  if (errors.length) found.push(head(`${errors.length} error${errors.length > 1 ? "s" : ""}`), element("pre", { class: "fault" }, ...errors.flatMap((message) => [...linked(message.text), "\n"])));
  if (!design) return found;
  found.push(head(`@${design.name} on ${design.array}`));
  found.push(fact("Click a tile, buffer, lock, stream or line of the text. Keys: press ?"));
  const used = design.tiles.map((tile) => [link(tileName(tile), { kind: "tile", place: tile.at.join() }), tile.memory ? tile.memory.spans.filter((span) => span[4]).length : "–", tile.memory ? fill(tile.memory) : "–", tile.locks.length, `${tile.bds[0] + tile.bds[1]} / ${tile.bds[2]}`]);
  found.push(table(["tile", ">buffers", "memory", ">locks", ">BDs"], used));
  return found;
}

const fill = (memory) => [element("meter", { min: 0, max: memory.limit, value: memory.used }), ` ${amount(memory.used)} of ${amount(memory.limit)}`];

function tileDetails({ place }) {
  const tile = tiles.get(place), found = [head(tileName(tile)), fact(atLine(tile.line))];
  if (run) found.push(...partyTable(place));
  if (tile.memory) {
    found.push(fact("Memory: ", ...fill(tile.memory)));
    found.push(...part("Buffers", table(["name", ">address", ">size", "type", "held by"], tile.memory.spans.map((span, index) => bufferRow(place, span, index)))));
  }
  if (tile.locks.length) found.push(...part("Locks", table([">id", "name", ">value", ">first"], tile.locks.map((lock, index) => [lock[0], link(lock[1] || "(no name)", { kind: "lock", place, index }), lockValue(place, index), lock[2]]))));
  if (tile.core) found.push(...coreDetails(tile.core));
  if (tile.channels.length) found.push(...part("Channels", table(["channel", "name", "BDs"], tile.channels.map((channel) => channelRow(tile, channel)))));
  return found;
}

function bufferRow(place, [start, end, name, type], index) {
  return [link(name, { kind: "buffer", place, index }), `0x${start.toString(16)}`, amount(end - start), type, heldBy(place, index) || ""];
}

function channelRow(tile, [direction, number, name]) {
  const own = bdsOf(tile, `${direction} ${number}`);
  return [`${direction} ${number}`, name && `@${name}`, own.flatMap((index) => [bdLink(index), " "])];
}

const bdsOf = (tile, channel) => design.transfers.flatMap((bd, index) => (bd.tile.join() === tile.at.join() && bd.channel === channel ? [index] : []));
const bdLink = (index) => { const bd = design.transfers[index]; return link(`${bd.number === null ? "BD" : `BD ${bd.number}`} ${bd.buffer}`, { kind: "transfer", index }); };

function coreDetails(core) {
  const rows = core.calls.map((call) => [call.name, atLine(call.line), call.buffers.map((buffer) => bufferName(buffer)).join(", ")]);
  const facts = [`stack of ${amount(core.stack)}`, core.elf && `program or kernels in ${core.elf}`].filter(Boolean).join(", ");
  return [...part("Core", fact(atLine(core.line), `, ${facts}`)), ...(rows.length ? part("Calls", table(["kernel", "line", "buffers"], rows)) : [])];
}

// The span of a tile's memory that holds a byte address.
function spanAt(place, address) {
  const tile = tiles.get(place);
  return tile && tile.memory ? tile.memory.spans.findIndex(([start, end]) => start <= address && address < end) : -1;
}

function bufferName([column, row, address]) {
  const index = spanAt(`${column},${row}`, address);
  return index < 0 ? `0x${address.toString(16)}` : tiles.get(`${column},${row}`).memory.spans[index][2];
}

function bufferDetails({ place, index }) {
  const tile = tiles.get(place), [start, end, name, type, line] = tile.memory.spans[index];
  const movers = design.transfers.flatMap((bd, number) => (!bd.host && bd.buffer === name && bd.tile.join() === place ? [number] : []));
  const found = [head(name), fact(link(tileName(tile), { kind: "tile", place }), ", ", atLine(line)), fact(type), fact(`bytes ${start} to ${end} (0x${start.toString(16)}), ${amount(end - start)}, ${((100 * (end - start)) / tile.memory.limit).toFixed(1)} % of the tile's memory`)];
  const holder = heldBy(place, index);
  if (run) found.push(fact("held by: ", holder || "nobody"));
  if (movers.length) found.push(...part("Moved by", table(["BD", "channel", "line"], movers.map((number) => [bdLink(number), design.transfers[number].channel, atLine(design.transfers[number].line)]))));
  const calls = tile.core ? tile.core.calls.filter((call) => call.buffers.some((buffer) => bufferName(buffer) === name)) : [];
  if (calls.length) found.push(...part("Given to", table(["kernel", "line"], calls.map((call) => [call.name, atLine(call.line)]))));
  return found;
}

function lockDetails({ place, index }) {
  const tile = tiles.get(place), [id, name, init, line] = tile.locks[index];
  const users = design.transfers.flatMap((bd, number) => ([...bd.acquire, ...bd.release].some((use) => use.split(" ")[0] === name) && bd.tile.join() === place ? [number] : []));
  const found = [head(`lock ${name || id}`), fact(link(tileName(tile), { kind: "tile", place }), `, number ${id}, `, atLine(line)), fact(`first value ${init}`)];
  if (run) found.push(fact("value now: ", element("b", { id: "lock-value" }, String(lockValue(place, index)))), ...waitersOf(place, index));
  if (users.length) found.push(...part("BDs that use it", table(["BD", "channel", "acquire", "release"], users.map((number) => { const bd = design.transfers[number]; return [bdLink(number), bd.channel, bd.acquire.join(", "), bd.release.join(", ")]; }))));
  return found;
}

function streamDetails({ index }) {
  const stream = design.streams[index], [, role] = design.legend[stream.color];
  const end = ([column, row, port]) => [link(`${design.kinds[`${column},${row}`]} (${column}, ${row})`, { kind: "tile", place: `${column},${row}` }), ` ${port}`];
  return [head(stream.packet === null ? "Stream (circuit)" : `Packets of id ${stream.packet}`), fact(role), fact("from ", ...end(stream.from)), ...stream.to.map((each) => fact("to ", ...end(each))), fact(`${stream.hops} border${stream.hops === 1 ? "" : "s"} between tiles at most`), fact(...stream.lines.flatMap((line) => [atLine(line), " "]))];
}

function transferDetails({ index }) {
  const bd = design.transfers[index], place = bd.tile.join(), tile = tiles.get(place);
  const found = [
    head(`${bd.number === null ? "BD" : `BD ${bd.number}`} of ${bd.channel}`),
    fact(link(tileName(tile), { kind: "tile", place }), ", ", atLine(bd.line), bd.sequence ? `, of sequence @${bd.sequence}` : ""),
    fact(`${bd.channel.startsWith("S2MM") ? "writes" : "reads"} ${bd.host ? "host buffer" : "buffer"} ${bd.buffer}: ${bd.shape.join("x")}${bd.shape.length ? "x" : ""}${bd.element}`),
    fact(`offset ${bd.offset}, length ${bd.length} elements`),
  ];
  if (bd.sizes.length) {
    found.push(fact(`sizes [${bd.sizes.join(", ")}], strides [${bd.strides.join(", ")}]`));
    found.push(element("div", { class: "faint" }, inWords(bd)));
  }
  if (bd.pads.some(([before, after]) => before || after)) found.push(fact(`padding (before, after) ${bd.pads.map((pad) => `(${pad.join(", ")})`).join(" ")}`));
  if (bd.packet) found.push(fact(`packet type ${bd.packet[0]}, id ${bd.packet[1]}`));
  for (const use of [...bd.acquire, ...bd.release]) found.push(fact(use));
  return [...found, ...walkOf(bd)];
}

// The dimensions as sentences, outermost first.
function inWords(bd) {
  return bd.sizes.map((size, dim) => (dim === bd.sizes.length - 1 && bd.strides[dim] === 1 ? `${size} in a row` : `${size} with stride ${bd.strides[dim]}`)).join(", of each ");
}

function lineDetails({ line }) {
  const found = items.get(line) || [];
  const messages = data.messages.filter((message) => message.line === line);
  return [head(`line ${line}`), element("pre", {}, (data.text.split("\n")[line - 1] || "").trim()), ...messages.map((message) => element("pre", { class: "fault" }, message.text)), ...found.map((item) => fact(link(nameOf(item), item)))];
}

function nameOf(item) {
  if (item.kind === "transfer") { const bd = design.transfers[item.index]; return `BD of ${tileName(tiles.get(bd.tile.join()))} ${bd.channel}: ${bd.buffer}`; }
  if (item.kind === "stream") return `stream from (${design.streams[item.index].from.slice(0, 2).join(", ")})`;
  const tile = tiles.get(item.place);
  if (item.kind === "buffer") return `buffer ${tile.memory.spans[item.index][2]}`;
  return item.kind === "lock" ? `lock ${tile.locks[item.index][1]}` : tileName(tile);
}
