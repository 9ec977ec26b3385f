// `node precompile.mjs FOLDER`: start Python as the page does, and add to bdforge.zip the bytecode of what was imported.
// Python in the browser then starts in half of the time; what is imported later is compiled there.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { runInThisContext } from "node:vm";

const folder = resolve(process.argv[2]);
const { loadPyodide } = createRequire(import.meta.url)(join(folder, "pyodide", "pyodide.js"));
const startPython = runInThisContext(`${readFileSync(join(folder, "python.js"), "utf8")};startPython`);
const python = await startPython(loadPyodide, join(folder, "pyodide/"), (name) => new Uint8Array(readFileSync(join(folder, name))), () => {});
python.globals.set("design", readFileSync(join(folder, "tasks", "chain.mlir"), "utf8"));
python.globals.set("tasks", readFileSync(join(folder, "tasks", "tasks.json"), "utf8"));
python.runPython(`
import json, sys, zipfile
from importlib._bootstrap_external import _code_to_hash_pyc
from importlib.util import source_hash

task = next(each for each in json.loads(tasks) if each["name"] == "chain")
answer = json.loads(session.run(design, "chain.mlir", json.dumps(task), None, 10_000))
assert answer["state"] == "right", answer["said"]

begin = "/bdforge.zip/"
files = {module.__file__ for module in sys.modules.values() if (getattr(module, "__file__", None) or "").startswith(begin)}
with zipfile.ZipFile("/bdforge.zip") as given, zipfile.ZipFile("/made.zip", "w", zipfile.ZIP_DEFLATED) as made:
    for name in given.namelist():
        text = given.read(name)
        made.writestr(name, text)
        if begin + name in files:
            made.writestr(name + "c", bytes(_code_to_hash_pyc(compile(text, name, "exec"), source_hash(text), False)))
`);
writeFileSync(join(folder, "bdforge.zip"), python.FS.readFile("/made.zip"));
