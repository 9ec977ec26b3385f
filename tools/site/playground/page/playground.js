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

const box = (name) => document.querySelector(`.editor[data-file=${name}]`);
const editor = new Editor(box("text"), changed, (line) => viewer.tell({ line }));
const kernels = new Editor(box("kernels"), changed, () => {});
const messages = new Messages(at("messages"), (line) => { showTab("text"); editor.toLine(line, true); viewer.tell({ line }); });
const viewer = new Viewer(at("view"), heard);
const python = new Asked((loading, error) => {
  say(error || (loading ? `starting: ${loading} …` : ""));
  if (error) messages.say("error", error);
});

function say(text) {
  at("state").textContent = text;
}

// A line or a BD was chosen in the viewer, or runs at its step.
function heard({ lines, runs }) {
  if (lines) { editor.show("chosen", lines); if (lines.length) editor.toLine(lines[0]); }
  if (runs !== undefined) editor.show("runs", runs ? [runs] : []);
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
  show(await ask("checking …", "check", editor.value, file), editor.value);
}

async function start() {
  clearTimeout(timer);
  if (python.busy) return;
  messages.clear();
  const text = editor.value, about = { ...task, kernels: kernels.value };
  const found = await ask("running …", "run", text, file, JSON.stringify(about), arrays, Math.max(1, Math.round(+at("budget").value) || 1));
  show(found, text);
  ran = Boolean(found) && found.state !== "wrong";
  if (ran && found.state === "right" && task.kind === "puzzle") solve(at("choice"), task);
}

const STATES = { wrong: "errors", checked: "no errors found", failed: "the run failed", ended: "ended", different: "ended, with a wrong element", right: "ended, right" };

// Show an answer, unless the text has changed since it was asked for: then it is asked for again.
function show(found, text) {
  if (wanted) { wanted = false; timer = setTimeout(check, 0); }
  if (!found || text !== editor.value) return;
  const solved = found.state === "right" && task.kind === "puzzle";
  say(solved ? "solved" : STATES[found.state]);
  messages.show(found);
  if (unread) messages.say("error", unread);
  editor.mark(found.messages.filter(({ line }) => line).map(({ line, kind, text: title }) => [line, kind, title]));
  const first = found.messages.find(({ kind, line }) => kind === "error" && line);
  if (first && document.activeElement !== editor.text) editor.toLine(first.line);
  viewer.show(found.html).then(() => { document.body.dataset.state = solved ? "solved" : found.state; });
}

async function step() {
  if (ran) viewer.tell({ step: 1 });
  else await start();
}

function open(design) {
  task = design.task || { name: "", kind: "yours", title: "", said: [] };
  [file, arrays, ran] = [design.file, design.arrays || null, false];
  editor.value = design.text;
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
  history.replaceState(null, "", `#design=${await packed({ file, text: editor.value, kernels: kernels.value, task: task.name })}`);
  try {
    await navigator.clipboard.writeText(location.href);
    say("the link is copied");
  } catch {
    say("the link is in the address bar");
  }
}

async function read(dropped) {
  if (!dropped) return;
  if (dropped.name.endsWith(".toml")) return messages.say("error", `${dropped.name} is a document or spec, which are read on your machine: open what bdforge render ${dropped.name} writes`);
  const text = await dropped.text();
  if (dropped.name.endsWith(".py")) { kernels.value = text; showTab("kernels"); changed(); return; }
  open({ file: dropped.name, text, kernels: kernels.value });
}

function showTab(name) {
  for (const tab of document.querySelectorAll("nav button")) tab.setAttribute("aria-selected", String(tab.dataset.file === name));
  for (const each of document.querySelectorAll(".editor")) each.hidden = each.dataset.file !== name;
}

connect(at, {
  start, step, link, read, showTab,
  stop: () => python.stop(),
  choose: (name) => { history.replaceState(null, "", `#task=${name}`); fromLink(); },
});
addEventListener("hashchange", fromLink);
tasks = await (await fetch("tasks/tasks.json")).json();
fillChoice(at("choice"), tasks);
await fromLink();
