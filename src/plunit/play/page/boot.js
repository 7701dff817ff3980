// The page: its token and settings from the address, and calls by HTTP.
import { mount } from "./play.js";

const GONE = "The server has ended. Run plunit play again and open the address that it prints.";
const BARE = "This link holds settings, but no key to a server. Run plunit play 'LINK', or paste the link into the address bar of an open playground.";
const parts = () => new URLSearchParams(location.hash.slice(1));
const token = parts().get("token") ?? "";

async function call(kind, body, options = {}) {
  if (!token) throw Object.assign(new Error(BARE), { status: 403 });
  let reply, buffer;
  try {
    const headers = { "Content-Type": "application/json", "X-Plunit-Token": token };
    reply = await fetch(`call/${kind}`, { method: "POST", headers, body: JSON.stringify(body), ...options });
    buffer = await reply.arrayBuffer();
  } catch {
    throw Object.assign(new Error(GONE), { status: 0 });
  }
  const read = (from, length) => JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, from, length)));
  if (!reply.ok) throw Object.assign(new Error(read(0).error), { status: reply.status });
  const length = new DataView(buffer).getUint32(0, true);
  return { json: read(4, length), payload: new Uint8Array(buffer, 4 + length) };
}

function settingsOfAddress() {
  try {
    return JSON.parse(parts().get("settings"));
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
