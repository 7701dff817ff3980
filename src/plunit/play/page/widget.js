// The notebook: the same page, with anywidget's messages instead of HTTP.
import { mount } from "./play.js";

function render({ model, el }) {
  el.innerHTML = model.get("markup");
  const waiting = new Map();
  let count = 0;
  model.on("msg:custom", (message, buffers) => {
    const { done, fail } = waiting.get(message.id) ?? {};
    const view = buffers?.[0] ?? new Uint8Array();
    waiting.delete(message.id);
    if (message.error) fail?.(Object.assign(new Error(message.error), { status: message.status ?? 400 }));
    else done?.({ json: message.json, payload: new Uint8Array(view.buffer, view.byteOffset, view.byteLength) });
  });
  const call = (kind, body) => new Promise((done, fail) => {
    waiting.set(++count, { done, fail });
    model.send({ id: count, kind, body });
  });
  const play = mount(el.querySelector(".plunit-play"), call, {});
  return () => play.leave();
}

export default { render };
