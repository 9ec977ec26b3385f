// Puts the page together: a design in the editor is checked as it changes, and run when told to.

import { Asked } from "./asked.js";
import { connect } from "./controls.js";
import { Editor } from "./editor.js";
import { packed } from "./link.js";
import { Messages } from "./messages.js";
import { ofLink, ofTask } from "./sources.js";
import { showTask, fillChoice, solve } from "./tasks.js";
import { Viewer } from "./viewer.js";

const at = (id) => document.getElementById(id);
const SOON = 500; // ms after the last key
let tasks = [], task = null, file = "design.mlir", arrays = null, timer = 0, ran = false, wanted = false, unread = "";
let made = false, seen = ""; // whether messages and the array speak of MLIR that a document made; the text that the viewer shows

const box = (name) => document.querySelector(`.editor[data-file=${name}]`);
const editor = new Editor(box("text"), changed, (line) => { if (editor.value === seen) viewer.tell({ line }); });
const kernels = new Editor(box("kernels"), changed, () => {});
const mlir = new Editor(box("mlir"), () => {}, (line) => viewer.tell({ line }));
const told = () => (made ? mlir : editor); // what lines are of
const messages = new Messages(at("messages"), (line) => { showTold(); told().toLine(line, true); viewer.tell({ line }); });
const viewer = new Viewer(at("view"), heard);
const python = new Asked((loading, error) => {
  say(error || (loading ? `starting: ${loading} …` : ""));
  if (error) messages.say("error", error);
});

function say(text) {
  at("state").textContent = text;
}

// A line or a BD was chosen in the viewer, a line by its number, or something runs at its step.
function heard({ lines, asked, runs }) {
  if (told().value !== seen) return; // it was changed meanwhile
  if (asked) showTold();
  if (lines) { told().show("chosen", lines); if (lines.length) told().toLine(lines[0]); }
  if (runs !== undefined) told().show("runs", runs ? [runs] : []);
}

function changed() {
  ran = false;
  unread = "";
  clearTimeout(timer);
  timer = setTimeout(check, SOON);
}

async function ask(saying, name, ...given) {
  const enable = (busy) => { at("start").disabled = at("step").disabled = busy; at("stop").disabled = !busy; };
  enable(true);
  say(saying);
  try {
    return await python.ask(name, ...given);
  } catch (error) {
    if (error.message === "stopped") messages.say("warning", "stopped; Python starts again");
    else messages.say("error", error.message);
    return null;
  } finally {
    enable(python.busy);
  }
}

async function check() {
  clearTimeout(timer);
  if (python.busy) { wanted = true; return; }
  const asked = question();
  show(await ask("checking …", "check", ...asked), asked);
}

async function start() {
  clearTimeout(timer);
  if (python.busy) return;
  messages.clear();
  const asked = question(), [text, name, shape] = asked, ofTask = shape === (task.shape ?? "");
  const about = { ...task, kernels: kernels.value, reference: ofTask ? task.reference : "" };
  const found = await ask("running …", "run", text, name, JSON.stringify(about), arrays, Math.max(1, Math.round(+at("budget").value) || 1), shape);
  show(found, asked);
  ran = Boolean(found) && found.state !== "wrong";
  if (ran && found.state === "right" && task.kind === "puzzle") solve(at("choice"), task);
}

const STATES = { wrong: "errors", checked: "no errors found", failed: "the run failed", ended: "ended", different: "ended, with a wrong element", right: "ended, right" };

// The design in the editor, its file's name, and the sizes of a document's sequence.
const question = () => [editor.value, file, at("shape").value.trim()];

// Show an answer, unless the design has changed since it was asked for: then it is asked for again.
function show(found, asked) {
  if (wanted) { wanted = false; timer = setTimeout(check, 0); }
  if (!found || asked.some((part, index) => part !== question()[index])) return;
  const solved = found.state === "right" && task.kind === "puzzle";
  say(solved ? "solved" : STATES[found.state]);
  showMade(found);
  messages.show(found);
  if (unread) messages.say("error", unread);
  told().mark(found.messages.filter(({ line }) => line).map(({ line, kind, text: title }) => [line, kind, title]));
  const first = found.messages.find(({ kind, line }) => kind === "error" && line);
  if (first && document.activeElement !== told().text) told().toLine(first.line);
  seen = told().value;
  viewer.show(found.html).then(() => { document.body.dataset.state = solved ? "solved" : found.state; });
}

// The MLIR that a document made, and the sizes that were taken where none are said.
function showMade(found) {
  made = found.mlir !== null;
  mlir.value = found.mlir ?? "";
  editor.mark([]);
  tab("mlir").hidden = !made;
  at("shape").placeholder = found.shape;
  if (made || found.shape) at("sizes").hidden = !found.shape;
  if (!made && !mlir.box.hidden) showTab("text");
}

async function step() {
  if (ran) viewer.tell({ step: 1 });
  else await start();
}

function open(design) {
  task = design.task || { name: "", kind: "yours", title: "", said: [] };
  [file, arrays, ran] = [design.file, design.arrays || null, false];
  editor.value = design.text;
  showMade({ mlir: null, shape: "" });
  at("shape").value = design.shape ?? "";
  at("sizes").hidden = !design.shape;
  tab("text").textContent = file;
  kernels.value = design.kernels ?? task.kernels ?? "";
  at("choice").value = task.name;
  showTask(at("task"), task);
  showTab("text");
  document.body.dataset.state = "";
  messages.clear();
  if (python.busy) python.stop();
  check();
}

async function choose(name) {
  const found = tasks.find((each) => each.name === name);
  if (!found) return;
  say("loading …");
  open(await ofTask(found));
}

async function fromLink() {
  unread = "";
  const fragment = location.hash.slice(1);
  if (!fragment.startsWith("design=")) return choose(fragment.replace(/^task=/, "") || tasks[0].name);
  try {
    open(await ofLink(fragment.slice("design=".length), tasks));
  } catch (error) {
    await choose(tasks[0].name);
    unread = `this link cannot be read: ${error.message}`;
  }
}

async function link() {
  history.replaceState(null, "", `#design=${await packed({ file, text: editor.value, kernels: kernels.value, task: task.name, shape: at("shape").value })}`);
  try {
    await navigator.clipboard.writeText(location.href);
    say("the link is copied");
  } catch {
    say("the link is in the address bar");
  }
}

async function read(dropped) {
  if (!dropped) return;
  const text = await dropped.text();
  if (dropped.name.endsWith(".py")) { kernels.value = text; showTab("kernels"); changed(); return; }
  open({ file: dropped.name, text, kernels: kernels.value });
}

const tab = (name) => document.querySelector(`nav button[data-file=${name}]`);

function showTab(name) {
  for (const each of document.querySelectorAll("nav button")) each.setAttribute("aria-selected", String(each.dataset.file === name));
  for (const each of document.querySelectorAll(".editor")) each.hidden = each.dataset.file !== name;
  for (const each of [editor, mlir]) each.appear();
}

const showTold = () => showTab(made ? "mlir" : "text");

connect(at, {
  start, step, link, read, showTab,
  stop: () => python.stop(),
  choose: (name) => { history.replaceState(null, "", `#task=${name}`); fromLink(); },
});
at("shape").addEventListener("input", changed);
addEventListener("hashchange", fromLink);
tasks = await (await fetch("tasks/tasks.json")).json();
fillChoice(at("choice"), tasks);
await fromLink();
