// Examples and puzzles: their list, what a puzzle asks for, and which are solved in this browser.

const KINDS = { example: "Examples", puzzle: "Puzzles" };
const SOLVED = "bdforge-solved";

function solved() {
  try {
    return new Set(JSON.parse(localStorage.getItem(SOLVED) || "[]"));
  } catch {
    return new Set(); // storage may be switched off
  }
}

const label = (task) => `${solved().has(task.name) ? "✓ " : ""}${task.title}`;

export function fillChoice(choice, tasks) {
  for (const [kind, title] of Object.entries(KINDS)) {
    const group = document.createElement("optgroup");
    group.label = title;
    for (const task of tasks.filter((each) => each.kind === kind)) group.append(new Option(label(task), task.name));
    choice.append(group);
  }
}

export function solve(choice, task) {
  try {
    localStorage.setItem(SOLVED, JSON.stringify([...solved().add(task.name)]));
  } catch {
    return;
  }
  choice.selectedOptions[0].textContent = label(task);
}

export function showTask(box, task) {
  const hint = box.querySelector("details");
  box.hidden = task.kind !== "puzzle";
  box.querySelector("h2").textContent = task.title;
  box.querySelector("p").textContent = task.said.join(" ");
  hint.querySelector("p").textContent = task.hint || "";
  hint.open = false;
}
