// Buttons, keys and files that are dropped, and what each does.

export function connect(at, { start, step, stop, link, choose, read, showTab }) {
  for (const [id, action] of Object.entries({ start, step, stop, link })) at(id).addEventListener("click", action);
  at("choice").addEventListener("change", () => choose(at("choice").value));
  at("open").addEventListener("change", () => { read(at("open").files[0]); at("open").value = ""; });
  for (const tab of document.querySelectorAll("nav button")) tab.addEventListener("click", () => showTab(tab.dataset.file));
  addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) start(); });
  dropping(read);
}

function dropping(read) {
  const over = (is) => document.body.classList.toggle("dropping", is);
  addEventListener("dragover", (event) => { event.preventDefault(); over(true); });
  addEventListener("dragleave", () => over(false));
  addEventListener("drop", (event) => { event.preventDefault(); over(false); read(event.dataTransfer.files[0]); });
}
