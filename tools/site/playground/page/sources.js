// Where designs come from: a task beside this page, a link, a file.

import { unpacked } from "./link.js";

export async function ofTask(task) {
  const text = await (await fetch(`tasks/${task.file}`)).text();
  const arrays = task.arrays ? new Uint8Array(await (await fetch(`tasks/${task.arrays}`)).arrayBuffer()) : null;
  return { task, file: task.file, text, arrays, shape: task.shape };
}

// What a link holds, with the arrays of the task that it changes, if any; an error where it cannot be read.
export async function ofLink(fragment, tasks) {
  const found = await unpacked(fragment), task = tasks.find((each) => each.name === found.task);
  const arrays = task ? (await ofTask(task)).arrays : null;
  return { task, file: String(found.file), text: found.text, kernels: String(found.kernels ?? ""), arrays, shape: String(found.shape ?? "") };
}
