// The page: its token and settings from the address, and calls by HTTP.
import { mount } from "./play.js";

const GONE = "The server has ended. Run plunit play again and open the address that it prints.";
const parts = () => new URLSearchParams(location.hash.slice(1));
// A copied link has no token: a page of the same server, opened before in this browser, has left it here.
const token = parts().get("token") ?? localStorage.getItem("plunit-token") ?? "";
localStorage.setItem("plunit-token", token);

async function call(kind, body, options = {}) {
  const headers = { "Content-Type": "application/json", "X-Plunit-Token": token };
  let reply, buffer;
  try {
    reply = await fetch(`call/${kind}`, { method: "POST", headers, body: JSON.stringify(body), ...options });
    buffer = await reply.arrayBuffer();
  } catch {
    throw Object.assign(new Error(GONE), { status: 0 });
  }
  const text = (from, length) => new TextDecoder().decode(new Uint8Array(buffer, from, length));
  if (!reply.ok) throw Object.assign(new Error(errorIn(text(0), reply.status)), { status: reply.status });
  const length = new DataView(buffer).getUint32(0, true);
  return { json: JSON.parse(text(4, length)), payload: new Uint8Array(buffer, 4 + length) };
}

function errorIn(text, status) {
  try {
    return JSON.parse(text).error;
  } catch {
    return `The server answered ${status}.`;
  }
}

function settingsOfAddress() {
  try {
    return JSON.parse(parts().get("settings") ?? "null");
  } catch {
    return null;
  }
}

const fragment = (values) => `#${new URLSearchParams(values)}`;
const play = mount(document.querySelector(".plunit-play"), call, {
  settings: settingsOfAddress(),
  keep: (settings) => history.replaceState(null, "", fragment({ token, settings: JSON.stringify(settings) })),
  link: (settings) => location.origin + location.pathname + fragment({ settings: JSON.stringify(settings) }),
});
window.addEventListener("hashchange", () => settingsOfAddress() && play.begin(settingsOfAddress()));
window.addEventListener("pagehide", () => play.leave());
window.addEventListener("pageshow", (event) => event.persisted && play.start());
