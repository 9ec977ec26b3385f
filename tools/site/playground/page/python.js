// Starts Python with numpy and bdforge, in a worker or in Node. `read` gives the bytes of a file beside this one.

// A side module with one function: numpy asks glibc's backtrace() whether a temporary array may be reused, Pyodide has
// none, and one that finds nothing means no.
const BACKTRACE = Uint8Array.from([
  0, 97, 115, 109, 1, 0, 0, 0, 0, 15, 8, ...text("dylink.0"), 1, 4, 0, 0, 0, 0, // no memory, no table
  1, 7, 1, 96, 2, 127, 127, 1, 127, 3, 2, 1, 0, // (i32, i32) -> i32
  7, 13, 1, 9, ...text("backtrace"), 0, 0, 10, 6, 1, 4, 0, 65, 0, 11, // returns 0
]);

function text(letters) {
  return [...letters].map((letter) => letter.charCodeAt(0));
}

async function startPython(loadPyodide, indexURL, read, tell) {
  tell("Python");
  const files = Promise.all([read("numpy.zip"), read("bdforge.zip")]);
  const python = await loadPyodide({ indexURL });
  const [numpy, bdforge] = await files;
  tell("numpy");
  python.unpackArchive(numpy, "zip");
  python.FS.writeFile("/backtrace.so", BACKTRACE);
  python.FS.writeFile("/bdforge.zip", bdforge);
  tell("bdforge");
  python.runPython(`
import ctypes, sys
ctypes.CDLL("/backtrace.so", ctypes.RTLD_GLOBAL)
sys.path.insert(0, "/bdforge.zip")
from tools.site.playground import session
session.prepare()
`);
  return python;
}

// What reads documents, when the first one comes.
async function addDocuments(python, read, tell) {
  tell("documents");
  python.FS.writeFile("/documents.zip", await read("documents.zip"));
  python.pyimport("tools.site.playground.session").add_documents("/documents.zip");
}
