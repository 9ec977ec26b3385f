// Python, beside the page: asked for one thing after the other, until the page ends this worker.

importScripts("pyodide/pyodide.js", "python.js");

async function read(name) {
  const answer = await fetch(name);
  if (!answer.ok) throw new Error(`${name} cannot be read: ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

const started = startPython(loadPyodide, new URL("pyodide/", location).href, read, (what) => postMessage({ loading: what }));
started.then(() => postMessage({ loading: "" }), (error) => postMessage({ loading: "", error: `Python did not start: ${error.message}` }));

onmessage = async ({ data: { number, name, given } }) => {
  try {
    const python = await started, values = given.map((value) => (value instanceof Uint8Array ? python.toPy(value) : value));
    postMessage({ number, answer: JSON.parse(python.pyimport("session")[name](...values)) });
  } catch (error) {
    postMessage({ number, error: error.message });
  }
};
