// `node precompile.mjs FOLDER`: start Python as the page does, and add to its archives the bytecode of what was imported.
// Python in the browser then starts in half of the time; what is imported later is compiled there.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { runInThisContext } from "node:vm";

const folder = resolve(process.argv[2]);
const { loadPyodide } = createRequire(import.meta.url)(join(folder, "pyodide", "pyodide.js"));
const [startPython, addDocuments] = runInThisContext(`${readFileSync(join(folder, "python.js"), "utf8")};[startPython, addDocuments]`);
const read = (name) => new Uint8Array(readFileSync(join(folder, name)));
const python = await startPython(loadPyodide, join(folder, "pyodide/"), read, () => {});
await addDocuments(python, read, () => {});
for (const name of ["chain.mlir", "transpose.toml"]) python.globals.set(name.split(".")[0], readFileSync(join(folder, "tasks", name), "utf8"));
python.globals.set("tasks", readFileSync(join(folder, "tasks", "tasks.json"), "utf8"));
python.runPython(`
import json, sys, zipfile
from tools.site.playground import session
from importlib._bootstrap_external import _code_to_hash_pyc
from importlib.util import source_hash

task = next(each for each in json.loads(tasks) if each["name"] == "chain")
answer = json.loads(session.run(chain, "chain.mlir", json.dumps(task), None, 10_000))
assert answer["state"] == "right", answer["said"]
answer = json.loads(session.check(transpose, "transpose.toml"))
assert answer["state"] == "checked", answer["messages"]

files = {getattr(module, "__file__", None) for module in sys.modules.values()}
for archive in ("bdforge.zip", "documents.zip"):
    with zipfile.ZipFile(f"/{archive}") as given, zipfile.ZipFile(f"/made-{archive}", "w", zipfile.ZIP_DEFLATED) as made:
        for name in given.namelist():
            text = given.read(name)
            made.writestr(name, text)
            if f"/{archive}/{name}" in files:
                made.writestr(name + "c", bytes(_code_to_hash_pyc(compile(text, name, "exec"), source_hash(text), False)))
`);
for (const archive of ["bdforge.zip", "documents.zip"]) writeFileSync(join(folder, archive), python.FS.readFile(`/made-${archive}`));
