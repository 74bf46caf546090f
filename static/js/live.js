// Parts that poll: `<div id data-live hx-get="…" hx-trigger="every 2s, refresh" hx-swap="morph:outerHTML">`.
// The server leaves the trigger out of a part that is final; then nothing polls any more.
const label = (part) => part.querySelector(".live") ?? document.querySelector(`.live[data-of="${CSS.escape(part.id)}"]`);
const WORDS = { live: "live", paused: "paused", lost: "lost · retrying (r)", stopped: "stopped" };

function show(part, state) {
  const shown = part && label(part);
  if (!shown || shown.dataset.state === state) return;
  shown.dataset.state = state;
  shown.textContent = WORDS[state];
}

const polled = (event) => event.detail.elt?.closest?.("[data-live]");

document.addEventListener("htmx:beforeRequest", (event) => {
  const part = polled(event);
  if (!part) return;
  // A selection would be lost by a swap, and nobody looks at a hidden tab.
  const isRead = String(getSelection()) && getSelection().containsNode(part, true);
  if (document.hidden || isRead) {
    event.preventDefault();
    show(part, "paused");
  }
});

document.addEventListener("htmx:afterRequest", (event) => {
  const part = polled(event);
  if (part && event.detail.successful) show(part, "live");
});

for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
  document.addEventListener(name, (event) => {
    if (event.detail.xhr?.status === 401) return signedOut();
    show(polled(event), "lost");
  });
}

function signedOut() {
  for (const part of document.querySelectorAll("[data-live]")) show(part, "stopped");
  const notices = document.getElementById("notices");
  if (!notices || notices.querySelector("[data-signed-out]")) return;
  const bar = document.createElement("p");
  bar.className = "notice notice-amber";
  bar.dataset.signedOut = "";
  const link = document.createElement("a");
  link.href = `/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`;
  link.textContent = "sign in and return here";
  bar.append("You are signed out; what you see is no longer updated · ", link);
  notices.append(bar);
}

if (window.htmx) for (const part of document.querySelectorAll("[data-live]")) show(part, "live");

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  for (const part of document.querySelectorAll("[data-live]")) window.htmx?.trigger(part, "refresh");
});
