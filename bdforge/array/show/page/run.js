// A recorded run: the state after so many events, the timeline, and what both show in the array.

const ROW = 15, NAMES = 190;
let cursor = 0, state = null, playing = 0, span = [0, 1], rowsOrder = [], segments = [], stuck = new Set(), partyOf = new Map(), lockAt = new Map();

function prepareRun() {
  if (!run) return;
  run.parties.forEach(([name], party) => partyOf.set(name, party));
  run.locks.forEach(([name], lock) => {
    const found = /(\d+) of \S+ \((\d+), (\d+)\)/.exec(name);
    const place = `${found[2]},${found[3]}`, tile = tiles.get(place), index = tile ? tile.locks.findIndex(([id]) => id === +found[1]) : -1;
    if (index >= 0) lockAt.set(`${place},${index}`, lock);
  });
  span = [0, Math.max(run.events.length, 1)];
  stuck = stuckParties();
  rowsOrder = run.parties.map((_, party) => party).sort((one, other) => rank(one) - rank(other) || one - other);
  segments = allSegments();
  at("run").hidden = false;
  at("cursor").max = run.events.length;
  watchers.push((item) => { toRows(item); drawTimeline(); });
  controls();
}

function rank(party) {
  const place = run.parties[party][2];
  return place ? 1 + place[1] * 100 + place[0] : 0;
}

// Those whom the report of a deadlock names.
function stuckParties() {
  const names = [...partyOf.keys()].sort((one, other) => other.length - one.length);
  const told = run.fault.startsWith("deadlock") ? run.fault.split("\n").slice(1) : [];
  return new Set(told.map((line) => names.find((name) => line.trim().startsWith(`${name} `))).filter(Boolean).map((name) => partyOf.get(name)));
}

// The state after the first `count` events: values of locks, and of each party what it does and waits for.
function stateAfter(count) {
  const made = { locks: run.locks.map(([, first]) => first), open: run.parties.map(() => []), waits: run.parties.map(() => null), queued: run.parties.map(() => 0), tokens: run.parties.map(() => 0) };
  for (let number = 0; number < count; number++) apply(made, run.events[number]);
  return count === run.events.length ? atEnd(made) : made;
}

function apply(made, [party, letter, ...about]) {
  if (letter !== "w") made.waits[party] = null;
  if (letter === "b") made.open[party].push(about);
  else if (letter === "e") made.open[party].pop();
  else if (letter === "v") made.locks[about[0]] = about[1];
  else if (letter === "w") made.waits[party] = about;
  else if (letter === "p") made.queued[about[0]]++;
  else if (letter === "f") { made.queued[party]--; made.tokens[party] += about[0]; }
  else if (letter === "t") made.tokens[about[0]]--;
}

// How the run ended, also where more happened than was recorded.
function atEnd(made) {
  made.locks = run.end.locks.slice();
  made.waits.fill(null);
  for (const [party, ...wait] of run.end.waits) made.waits[party] = wait;
  made.open.forEach((stack) => stack.splice(0));
  for (const [party, ...begun] of run.end.open) made.open[party].push(begun);
  return made;
}

function allSegments() {
  const found = run.parties.map(() => []), begun = run.parties.map(() => []), waiting = run.parties.map(() => null);
  const close = (party, end) => { if (waiting[party]) { found[party].push([waiting[party][0], end, "wait", waiting[party][1]]); waiting[party] = null; } };
  run.events.forEach(([party, letter, ...about], number) => {
    if (letter === "w") { close(party, number); waiting[party] = [number, about[0]]; } else close(party, number);
    if (letter === "b") begun[party].push([number, about[0]]);
    const open = letter === "e" && begun[party].pop();
    if (open) found[party].push([open[0], number + 1, run.parties[party][1] === "core" ? "call" : "work", open[1]]);
  });
  const end = run.events.length;
  run.parties.forEach((_, party) => { begun[party].forEach(([from, what]) => found[party].push([from, end, run.parties[party][1] === "core" ? "call" : "work", what])); close(party, end); });
  return found;
}

const idle = (sentence) => sentence === "has no task" || sentence === "has no program";

function say([party, letter, ...about]) {
  const [name] = run.parties[party], text = (number) => run.texts[number];
  if (letter === "b") return `${name} begins ${text(about[0])}${about[2].length ? ` with ${about[2].map(bufferName).join(", ")}` : ""}`;
  if (letter === "e") return `${name} ends ${text(about[0])}`;
  if (letter === "v") return `${name}: lock ${run.locks[about[0]][0]} becomes ${about[1]}`;
  if (letter === "w") return `${name} ${text(about[0])}`;
  if (letter === "p") return `${name} pushes a task of BD ${about[1].join(", ")} to ${run.parties[about[0]][0]}`;
  if (letter === "f") return `${name} ends its task${about[0] ? " and issues a token" : ""}`;
  return `${name} has a token of ${run.parties[about[0]][0]}`;
}

function go(position) {
  cursor = Math.max(0, Math.min(run.events.length, position));
  state = stateAfter(cursor);
  at("cursor").value = cursor;
  at("position").textContent = `${cursor} / ${run.events.length}${run.count > run.events.length ? ` of ${run.count}` : ""}`;
  const event = run.events[cursor - 1], end = cursor === run.events.length;
  at("now").textContent = (end && run.fault ? run.fault.split("\n")[0] : event ? say(event) : "before the first event") + (end && run.count > run.events.length ? ` – recording stopped here; this is the state at the end, ${run.count - run.events.length} events later` : "");
  at("now").title = at("now").textContent;
  markRunning(event ? lineOf(event) : 0);
  showRun(end);
  follow();
  drawTimeline();
  if (!selected || selected.kind !== "transfer") writeDetails(selected);
}

// The line of a BD, or of the call with the same function and buffers.
function lineOf([party, letter, what, line, buffers]) {
  if (letter !== "b") return 0;
  const place = run.parties[party][2], tile = place && tiles.get(place.join());
  if (line || !tile || !tile.core) return line;
  const calls = tile.core.calls.filter((call) => call.name === run.texts[what]);
  const same_ = (call) => call.buffers.every((buffer, index) => buffers[index] && buffer[2] === buffers[index][2]);
  return (calls.find(same_) || calls[0] || { line: 0 }).line;
}

// The buffers that somebody holds: channels while a BD runs, cores while a call does.
function holders() {
  const held = new Map();
  state.open.forEach((stack, party) => {
    const top = stack[stack.length - 1], place = run.parties[party][2];
    if (!top || !place) return;
    const keys = top[2].length ? top[2].map(([column, row, address]) => `${column},${row},${spanAt(`${column},${row}`, address)}`) : transferKeys(party, place.join(), top[1]);
    keys.forEach((key) => held.set(key, party));
  });
  return held;
}

function transferKeys(party, place, line) {
  const tile = tiles.get(place);
  if (!tile || !tile.memory || !line) return [];
  const bd = design.transfers.find((each) => each.line === line && each.tile.join() === place && !each.host);
  const index = bd ? tile.memory.spans.findIndex((span) => span[2] === bd.buffer) : -1;
  return index < 0 ? [] : [`${place},${index}`];
}

let held = new Map();
function showRun(end) {
  held = holders();
  if (!design) return;
  const wanted = new Set(state.waits.flatMap((wait) => (wait && wait[2] >= 0 ? [wait[2]] : [])));
  for (const [key, lock] of lockAt) showLock(key, state.locks[lock], wanted.has(lock));
  for (const [key, bar] of shown.buffers) {
    const party = held.get(key), core = party !== undefined && run.parties[party][1] === "core";
    bar.classList.toggle("held", party !== undefined && !core);
    bar.classList.toggle("called", core);
  }
  document.querySelectorAll("#picture .stuck").forEach((each) => each.classList.remove("stuck"));
  run.parties.forEach((_, party) => showParty(party, end && stuck.has(party)));
}

function showParty(party, isStuck) {
  const [name, kind, place] = run.parties[party];
  if (!place) return;
  const box = kind === "core" ? shown.states.get(place.join()) : shown.ports.get(`${place.join()},${name.split(") ")[1]}`);
  if (isStuck && shown.tiles.has(place.join())) shown.tiles.get(place.join()).classList.add("stuck");
  if (!box) return;
  const doing = doingOf(party);
  box.classList.toggle("works", doing === "works");
  box.classList.toggle("waits", doing === "waits");
  box.classList.toggle("stuck", isStuck);
}

function doingOf(party) {
  const wait = state.waits[party];
  if (wait) return idle(run.texts[wait[0]]) ? "idle" : "waits";
  return state.open[party].length ? "works" : "idle";
}

function inState(party) {
  const wait = state.waits[party], stack = state.open[party], top = stack[stack.length - 1];
  const doing = top ? [element("span", { class: run.parties[party][1] === "core" ? "" : "works" }, run.texts[top[0]])] : [];
  if (!wait) return doing.length ? doing : ["–"];
  return [...doing, doing.length ? ", " : "", element("span", { class: idle(run.texts[wait[0]]) ? "faint" : "waits" }, ...linked(run.texts[wait[0]]))];
}

function partyTable(place) {
  if (!state) return [];
  const found = rowsOrder.filter((party) => (run.parties[party][2] || []).join() === place);
  const rows = found.map((party) => [run.parties[party][0], inState(party), state.queued[party] || "", state.tokens[party] || ""]);
  return part(`After event ${cursor}`, table(["party", "does, waits for", ">tasks", ">tokens"], rows));
}

const lockValue = (place, index) => (run && state && lockAt.has(`${place},${index}`) ? state.locks[lockAt.get(`${place},${index}`)] : tiles.get(place).locks[index][2]);
const heldBy = (place, index) => (run && held.has(`${place},${index}`) ? run.parties[held.get(`${place},${index}`)][0] : "");

function waitersOf(place, index) {
  const lock = lockAt.get(`${place},${index}`);
  return state.waits.flatMap((wait, party) => (wait && wait[2] === lock && lock !== undefined ? [fact(element("span", { class: "waits" }, `${run.parties[party][0]} `, ...linked(run.texts[wait[0]])))] : []));
}

// Scroll the timeline to the rows of a selected tile.
function toRows(item) {
  const [place] = placesOf(item), row = rowsOrder.findIndex((party) => place && (run.parties[party][2] || []).join() === place), box = at("rows");
  if (row >= 0 && (row * ROW < box.scrollTop || (row + 1) * ROW > box.scrollTop + box.clientHeight)) box.scrollTop = (row - 1) * ROW;
}

// Keep the cursor within what the timeline shows.
function follow() {
  const wide = span[1] - span[0];
  if (cursor >= span[0] && cursor <= span[1]) return;
  const from = Math.max(0, Math.min(run.events.length - wide, cursor - wide / 2));
  span = [from, from + wide];
}

function closer(factor) {
  const most = Math.max(run.events.length, 1), wide = Math.max(10, Math.min(most, (span[1] - span[0]) * factor));
  const from = Math.max(0, Math.min(most - wide, cursor - wide / 2));
  span = [from, from + wide];
  drawTimeline();
}

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function drawTimeline() {
  const canvas = at("timeline"), width = at("rows").clientWidth, height = rowsOrder.length * ROW + 2, dense = Math.min(window.devicePixelRatio || 1, 16000 / height);
  canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
  canvas.width = width * dense; canvas.height = height * dense;
  const pen = canvas.getContext("2d"), scale = (width - NAMES - 8) / (span[1] - span[0]), x = (event) => NAMES + (event - span[0]) * scale;
  const inks = { wait: color("wait"), work: color("work"), call: color("call") }, chosen = new Set(placesOf(selected));
  pen.scale(dense, dense);
  pen.font = "11px system-ui, sans-serif";
  rowsOrder.forEach((party, row) => {
    const [name, , place] = run.parties[party], y = row * ROW;
    if (place && chosen.has(place.join())) { pen.fillStyle = color("mark"); pen.fillRect(0, y, width, ROW); }
    pen.fillStyle = stuck.has(party) ? color("bad") : color("ink");
    pen.fillText(name, 6, y + 11, NAMES - 12);
    for (const [from, to, kind, what] of segments[party]) {
      if (to < span[0] || from > span[1] || (kind === "wait" && idle(run.texts[what]))) continue;
      const left = Math.max(NAMES, x(from)), right = Math.min(width - 8, x(to));
      pen.fillStyle = inks[kind];
      pen.fillRect(left, y + (kind === "wait" ? 8 : 2), Math.max(1, right - left - 0.5), kind === "wait" ? 4 : ROW - 4);
    }
  });
  pen.fillStyle = color("accent");
  pen.fillRect(x(cursor) - 1, 0, 2, height);
}

function play() {
  if (playing) { clearInterval(playing); playing = 0; at("play").textContent = "▶ Play"; return; }
  if (cursor === run.events.length) go(0);
  const step = Math.max(1, Math.round(run.events.length / 600));
  at("play").textContent = "❚❚ Pause";
  playing = setInterval(() => { if (cursor >= run.events.length) play(); else go(cursor + step); }, 100);
}

function controls() {
  const does = { first: () => go(0), back: () => go(cursor - 1), forth: () => go(cursor + 1), last: () => go(run.events.length), play, closer: () => closer(0.5), wider: () => closer(2) };
  for (const [name, action] of Object.entries(does)) at(name).addEventListener("click", action);
  at("cursor").addEventListener("input", () => go(+at("cursor").value));
  at("timeline").addEventListener("click", (event) => {
    const scale = (at("rows").clientWidth - NAMES - 8) / (span[1] - span[0]), row = Math.floor(event.offsetY / ROW), place = (run.parties[rowsOrder[row]] || [])[2];
    if (event.offsetX >= NAMES) go(Math.round(span[0] + (event.offsetX - NAMES) / scale));
    else if (place && tiles.has(place.join())) select({ kind: "tile", place: place.join() });
  });
  new ResizeObserver(() => drawTimeline()).observe(at("rows"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawTimeline());
}
