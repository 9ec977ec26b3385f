// The worker that Python runs in: questions get promises, and what takes too long is stopped with the worker.

export class Asked {
  constructor(tell) {
    this.tell = tell;
    this.start();
  }

  start() {
    this.waiting = new Map();
    this.number = 0;
    this.worker = new Worker("worker.js");
    this.worker.onmessage = ({ data }) => this.told(data);
    this.worker.onerror = (event) => this.told({ loading: "", error: `Python did not start: ${event.message || "its worker cannot be loaded"}` });
  }

  told({ loading, number, answer, error }) {
    if (loading !== undefined) return this.tell(loading, error);
    const [done, failed] = this.waiting.get(number);
    this.waiting.delete(number);
    if (error === undefined) done(answer);
    else failed(new Error(error));
  }

  // What a function of session.py answers.
  ask(name, ...given) {
    const number = this.number++;
    this.worker.postMessage({ number, name, given });
    return new Promise((done, failed) => this.waiting.set(number, [done, failed]));
  }

  get busy() {
    return this.waiting.size > 0;
  }

  // End whatever runs; Python starts again for the next question.
  stop() {
    this.worker.terminate();
    const waiting = [...this.waiting.values()];
    this.start();
    for (const [, failed] of waiting) failed(new Error("stopped"));
  }
}
