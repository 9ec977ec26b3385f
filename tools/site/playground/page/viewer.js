// The viewer in its frame: another page after each answer, which hears nothing before it is loaded.

export class Viewer {
  // `heard` gets what is said in the viewer.
  constructor(frame, heard) {
    [this.frame, this.loaded] = [frame, Promise.resolve()];
    addEventListener("message", ({ source, data }) => { if (source === frame.contentWindow) heard(data); });
  }

  show(html) {
    this.loaded = new Promise((done) => this.frame.addEventListener("load", done, { once: true }));
    this.frame.srcdoc = html;
    return this.loaded;
  }

  async tell(message) {
    await this.loaded;
    this.frame.contentWindow.postMessage(message, "*");
  }
}
