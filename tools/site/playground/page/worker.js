// Python, beside the page: asked for one thing after the other, until the page ends this worker.

importScripts("pyodide/pyodide.js", "python.js");

async function read(name) {
  const answer = await fetch(name);
  if (!answer.ok) throw new Error(`${name} cannot be read: ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

const tell = (loading) => postMessage({ loading });
const started = startPython(loadPyodide, new URL("pyodide/", location).href, read, tell);
started.then(() => tell(""), (error) => postMessage({ loading: "", error: `Python did not start: ${error.message}` }));

let documents = null;
async function ready(file) {
  const python = await started;
  if (!file.endsWith(".toml")) return python;
  documents ??= addDocuments(python, read, tell).then(() => tell(""), (error) => { documents = null; throw error; });
  await documents;
  return python;
}

onmessage = async ({ data: { number, name, given } }) => {
  try {
    const python = await ready(given[1]), values = given.map((value) => (value instanceof Uint8Array ? python.toPy(value) : value));
    postMessage({ number, answer: JSON.parse(python.pyimport("tools.site.playground.session")[name](...values)) });
  } catch (error) {
    postMessage({ number, error: error.message });
  }
};
