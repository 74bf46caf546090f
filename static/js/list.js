// The list of sessions: the panel beside it, selecting rows, and what is said while rows are fetched.
// Everything here is also a link or a form of the page; this keeps the page where it is.
const sheet = document.getElementById("keys");
const singleKeysOn = sheet?.dataset.on !== "no";
const SLOW_AFTER = 4000;

const panel = () => document.getElementById("peek");
const narrow = matchMedia("(max-width: 900px)");
const isOpen = () => Boolean(panel() && !panel().hidden);
const rowOf = (element) => element?.closest?.("tr[data-row]");
const focusedRow = () => rowOf(document.activeElement);
const linkOf = (id) => [...document.querySelectorAll("a[data-peek]")].find((link) => link.dataset.peek === id);

// --- The panel

// panel.js measured it before it had a width; without one of the person's own, the page's own holds.
if (panel()?.hidden && !/(?:^|; )panel=\d/.test(document.cookie)) document.documentElement.style.removeProperty("--panel-width");
const edge = document.querySelector(".panel-edge");
let asked = null;
let waiting = 0;

function addressWith(id, from = location.href) {
  const address = new URL(from);
  if (id) address.searchParams.set("peek", id);
  else address.searchParams.delete("peek");
  address.searchParams.delete("select");
  address.hash = "";
  return address;
}

function show(isShown) {
  panel().hidden = !isShown;
  document.querySelector("#main > .body").classList.toggle("body-panel", isShown);
  if (isShown) edge?.setAttribute("aria-valuenow", Math.round(panel().getBoundingClientRect().width));
}

function mark(id) {
  for (const row of document.querySelectorAll("tr.is-picked")) row.classList.remove("is-picked");
  for (const link of document.querySelectorAll("a[data-peek][aria-current]")) link.removeAttribute("aria-current");
  const copy = document.querySelector("[data-copy][data-shared]");
  if (copy) copy.dataset.copy = addressWith(id, copy.dataset.copy);
  const link = id && linkOf(id);
  if (!link) return;
  link.setAttribute("aria-current", "true");
  rowOf(link).classList.add("is-picked");
}

async function peek(id, { how }) {
  const address = addressWith(id);
  asked?.abort();
  asked = new AbortController();
  const { signal } = asked;
  mark(id);
  const html = await fetch(address, { headers: { "HX-Request": "true", "HX-Target": "peek-body" }, signal }).then((answer) => {
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.text();
  }).catch((error) => {
    // Signed out, or the server is away: the page itself says so better.
    if (error.name !== "AbortError") location.assign(address);
  });
  if (html === undefined || signal.aborted) return;
  const body = document.getElementById("peek-body");
  const hadFocus = body.contains(document.activeElement);
  body.innerHTML = html;
  if (hadFocus) body.querySelector("a, button")?.focus({ preventScroll: true });
  window.htmx?.process(body);
  document.dispatchEvent(new CustomEvent("htmx:load", { detail: { elt: body } }));
  panel().scrollTop = 0;
  show(true);
  document.getElementById("peek-said").textContent = `Side panel: ${id}`;
  if (how) history[how === "push" ? "pushState" : "replaceState"]({ peek: id }, "", address);
  rowOf(linkOf(id))?.scrollIntoView({ block: "nearest" });
}

function closePanel({ how = "push" } = {}) {
  asked?.abort();
  const id = panel().querySelector("[data-peeked]")?.dataset.peeked;
  const hadFocus = panel().contains(document.activeElement);
  show(false);
  document.getElementById("peek-body").textContent = "";
  document.getElementById("peek-said").textContent = "Side panel closed";
  mark(null);
  if (how === "push") history.pushState({}, "", addressWith(null));
  if (hadFocus && id) rowOf(linkOf(id))?.querySelector("a[data-row-link]").focus();
}

document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target.closest?.("a[data-peek], a[data-peek-close]");
  // Where there is no room beside the list, the panel stands above it on a page of its own address.
  if (!link || !panel() || (narrow.matches && link.dataset.peek !== undefined)) return;
  event.preventDefault();
  const isShown = isOpen() && panel().querySelector("[data-peeked]")?.dataset.peeked === link.dataset.peek;
  if (link.dataset.peek === undefined || isShown) closePanel();
  else peek(link.dataset.peek, { how: isOpen() ? "replace" : "push" });
});

// With the panel open it shows the row that the focus is on; rows that are only passed are not fetched.
document.addEventListener("focusin", (event) => {
  const link = rowOf(event.target)?.querySelector("a[data-peek]");
  if (!link || !isOpen() || narrow.matches || link.hasAttribute("aria-current")) return;
  clearTimeout(waiting);
  waiting = setTimeout(() => isOpen() && peek(link.dataset.peek, { how: "replace" }), 60);
});

// Tab goes from the row into its panel, and back: behind the last row it would be the panel of that one.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Tab" || !panel() || !isOpen() || narrow.matches) return;
  const link = document.querySelector("a[data-peek][aria-current]");
  const first = panel().querySelector(".panel-edge, a");
  const [from, to] = event.shiftKey ? [first, link] : [link, first];
  if (!from || !to || event.target !== from) return;
  event.preventDefault();
  to.focus();
});

addEventListener("popstate", () => {
  const address = new URL(location.href);
  const id = address.searchParams.get("peek");
  address.searchParams.delete("peek");
  if (address.search !== listed) return location.reload();
  if (id) peek(id, { how: null });
  else if (isOpen()) closePanel({ how: null });
});

// Which list stands on the page, whatever is peeked at.
let listed = "";
function remember() {
  const address = new URL(location.href);
  address.searchParams.delete("peek");
  listed = address.search;
}
remember();
document.addEventListener("htmx:pushedIntoHistory", remember);

// --- Selecting

const boxes = () => [...document.querySelectorAll('input[form="bulk"]')];

function count() {
  const form = document.getElementById("bulk");
  if (!form) return;
  const ticked = boxes().filter((box) => box.checked).length;
  const most = 200;
  form.querySelector("[data-count]").textContent = ticked;
  form.querySelector("[data-too-many]").hidden = ticked <= most;
  const all = form.querySelector("[data-all-matching]")?.checked;
  for (const button of form.querySelectorAll('button[name="do"]')) {
    button.disabled = all ? button.hasAttribute("data-rows-only") : !ticked || ticked > most;
  }
  form.classList.toggle("is-shown", Boolean(all) || ticked > 0);
  for (const box of boxes()) rowOf(box).classList.toggle("is-ticked", box.checked);
  const head = document.querySelector("input[data-select-all]");
  if (!head) return;
  head.checked = ticked > 0 && ticked === boxes().length;
  head.indeterminate = ticked > 0 && !head.checked;
}

function arm() {
  for (const part of document.querySelectorAll("[data-scripted]")) part.hidden = false;
  count();
}

document.addEventListener("change", (event) => {
  if (event.target.matches?.("input[data-select-all]")) for (const box of boxes()) box.checked = event.target.checked;
  if (event.target.matches?.('input[data-select-all], input[data-all-matching], input[form="bulk"]')) count();
});
document.addEventListener("click", (event) => {
  if (!event.target.closest?.("a[data-select-all]")) return;
  event.preventDefault();
  for (const box of boxes()) box.checked = true;
  count();
});
document.addEventListener("reset", (event) => event.target.id === "bulk" && setTimeout(() => {
  for (const box of boxes()) box.checked = false;
  count();
}));
addEventListener("pageshow", arm);

// What is done leads back to the list as it is now, with the panel that is open.
document.addEventListener("submit", (event) => {
  const back = event.target.elements.namedItem("back");
  if (back?.type === "hidden" && event.target.closest("#found, #peek")) back.value = location.search || "?";
}, true);

// --- Keys that mean the row: the others are in keys.js

function isTaken(event) {
  const { target } = event;
  if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return true;
  if (!singleKeysOn || sheet?.open || target.isContentEditable) return true;
  return target.matches("textarea, select, input:not([type=checkbox])");
}

function pressSpace(event) {
  // Space belongs to what has the focus, unless that is a link of a row or nothing.
  const row = focusedRow();
  if (row ? !event.target.matches("a") : event.target !== document.body && event.target.id !== "main") return false;
  if (!row && isOpen()) return closePanel() ?? true;
  const link = (row ?? document.querySelector("tr[data-row]"))?.querySelector("a[data-peek]");
  if (!link) return false;
  if (!row) rowOf(link).querySelector("a[data-row-link]").focus();
  link.click();
  return true;
}

function pressSelect() {
  const box = (focusedRow() ?? document.querySelector("tr.is-picked") ?? document.querySelector("tr[data-row]"))?.querySelector('input[form="bulk"]');
  box?.click();
  return Boolean(box);
}

// Enter on a tick would press the first button of the form.
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches?.('input[form="bulk"]')) event.preventDefault();
}, true);

// With a reason written, mod+Enter means the button below it; the form alone would not know which.
document.addEventListener("keydown", (event) => {
  const button = event.target.closest?.("#bulk .menu-list")?.querySelector("button[name=do]");
  if (!button || event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  event.target.form.requestSubmit(button);
}, true);

const pressed = { " ": pressSpace, x: pressSelect };
document.addEventListener("keydown", (event) => {
  if (!pressed[event.key] || isTaken(event)) return;
  if (pressed[event.key](event)) event.preventDefault();
}, true);

// --- While rows are fetched, and when that fails. The bar itself is `.busy` under `.htmx-request`

const isOfList = (event) => ["main", "more"].includes(event.detail.target?.id);
let slow = 0;
let since = null;

function say(id, ...parts) {
  document.getElementById(id)?.replaceChildren(...parts);
}

document.addEventListener("htmx:beforeRequest", (event) => {
  if (!isOfList(event)) return;
  clearTimeout(slow);
  say("failed");
  slow = setTimeout(() => say("slow", "still searching, narrow the range (t)"), SLOW_AFTER);
});
document.addEventListener("htmx:afterRequest", (event) => {
  if (!isOfList(event)) return;
  clearTimeout(slow);
  say("slow");
  if (event.detail.successful) since = null;
});

// A query that cannot be understood is answered with 400 and a page that says why: it is shown as any other.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (!isOfList(event) || event.detail.xhr.status !== 400) return;
  event.detail.shouldSwap = true;
  event.detail.isError = false;
});

const WHY = { "htmx:sendError": "the server could not be reached", "htmx:timeout": "the server did not answer in time" };
for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
  document.addEventListener(name, (event) => {
    const { status, responseText = "" } = event.detail.xhr ?? {};
    if (!isOfList(event) || status === 400 || status === 401) return;
    since ??= new Date();
    const reference = responseText.match(/reference <code>(\w+)<\/code>/)?.[1];
    const why = WHY[name] ?? `the server answered ${status}${reference ? `, reference ${reference} in its log` : ""}`;
    const retry = Object.assign(document.createElement("button"), { type: "button", className: "btn btn-small", textContent: "retry (r)" });
    retry.dataset.key = "r";
    const { elt } = event.detail;
    retry.addEventListener("click", () => window.htmx.trigger(elt, elt.matches("form") ? "submit" : "click"));
    say("failed", `The rows could not be fetched: ${why}, since ${since.toISOString().slice(11, 19)} UTC. `, retry);
  });
}

// A swap of the page keeps what scripts have added.
document.addEventListener("htmx:afterSwap", (event) => {
  if (!isOfList(event)) return;
  if (edge && panel() && !panel().contains(edge)) panel().prepend(edge);
  arm();
});
arm();
