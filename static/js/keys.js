// One table (web/keys.py) is rendered as the sheet; its rows are the keys that work here.
// A key presses the visible control that carries data-key with the same text.
import { moveRow, rowInFocus, toggleDensity } from "./rows.js";

const sheet = document.getElementById("keys");
const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
const presses = new Set([...(sheet?.querySelectorAll("[data-press]") ?? [])].map((key) => key.dataset.press));
const singleKeysOn = sheet?.dataset.on !== "no";
let prefix = "";
let prefixTimer = 0;

for (const key of document.querySelectorAll("[data-press]")) key.textContent = spelled(key.dataset.press);
for (const key of document.querySelectorAll("kbd[data-mod]")) key.textContent = spelled(`mod+${key.dataset.mod}`);

function spelled(press) {
  const name = press.replace(/^mod\+(\w)$/, (_, letter) => `mod+${letter.toUpperCase()}`);
  return name.replace("mod+", isMac ? "⌘ " : "Ctrl ").replace("Shift+", "⇧ ");
}

function isTyping(target) {
  return target.isContentEditable || target.matches("textarea, select, input:not([type=checkbox]):not([type=radio]):not([type=submit])");
}

// What the event is called in the table; without modifiers `J` and `Shift+R` are the same kind of key.
function namesOf(event) {
  if (event.ctrlKey || event.metaKey) return [`mod+${event.key.length === 1 ? event.key.toLowerCase() : event.key}`];
  if (event.altKey) return [];
  const name = event.key === "Escape" ? "Esc" : event.key;
  return event.shiftKey && /^[A-Z]$/.test(name) ? [`Shift+${name}`, name] : [name];
}

function isVisible(element) {
  return element.checkVisibility ? element.checkVisibility() : element.offsetParent !== null;
}

// What stands in a closed menu is one press away, and its key works all the same.
export function isOffered(element) {
  const menu = element.parentElement.closest("details.menu:not([open])");
  return menu ? !element.hidden && isVisible(menu) : isVisible(element);
}

function controlsOf(press) {
  return [...document.querySelectorAll(`[data-key="${CSS.escape(press)}"]`)].filter((element) => isOffered(element) && !element.disabled);
}

export function use(control) {
  if (control.matches("summary")) openMenuOf(control.closest("details"));
  if (control.matches("input, textarea, select")) {
    control.focus();
    control.select?.();
  } else if (control.matches("details, summary")) {
    toggle(control.closest("details"));
  } else {
    control.click();
  }
}

function openMenuOf(submenu) {
  const menu = submenu.parentElement.closest("details.menu:not([open])");
  if (!menu) return;
  menu.open = true;
  submenu.open = false;
}

// The focus goes into the menu: whoever opens it by a key goes on by keys, and the next Tab stays in it.
function toggle(details) {
  details.open = !details.open;
  const controls = details.open ? [...details.querySelectorAll("a, button, input, textarea")] : [details.querySelector("summary")];
  controls.find(isVisible)?.focus();
}

const builtIn = {
  "?": () => openSheet(),
  Esc: () => goUp(),
  Enter: (event) => takeNextStep(event),
  j: () => moveRow(1),
  k: () => moveRow(-1),
  d: () => toggleDensity(),
  r: () => refresh(),
};

function openSheet() {
  if (!sheet || sheet.open) return false;
  sheet.showModal();
  return true;
}

function closeMenu() {
  const open = [...document.querySelectorAll("details.menu[open]")].pop();
  if (!open) return false;
  open.open = false;
  open.querySelector("summary").focus();
  return true;
}

function goUp() {
  if (closeMenu()) return true;
  // What was opened on the page stands below the way up, and is closed first.
  const up = controlsOf("Esc").pop();
  if (!up) return false;
  up.click();
  return true;
}

// Enter belongs to whatever has the focus; only where nothing has it, it takes the next step.
function takeNextStep(event) {
  if (rowInFocus() || (event.target !== document.body && event.target.id !== "main")) return false;
  const next = document.querySelector("[data-next]");
  if (!next || !isVisible(next)) return false;
  next.click();
  return true;
}

function refresh() {
  const live = [...document.querySelectorAll("[data-live]")];
  for (const part of live) window.htmx?.trigger(part, "refresh");
  return live.length > 0;
}

function submitForm(event) {
  const form = event.target.closest?.("form") ?? document.querySelector('main [data-next] kbd[data-mod="Enter"]')?.closest("form");
  if (!form) return false;
  form.requestSubmit();
  return true;
}

function run(press, event) {
  if (press === "mod+Enter") return submitForm(event);
  const [control] = controlsOf(press);
  if (control && press !== "?" && press !== "Esc") {
    use(control);
    return true;
  }
  return presses.has(press) && builtIn[press] ? builtIn[press](event) : false;
}

function remember(key) {
  clearTimeout(prefixTimer);
  prefix = key;
  prefixTimer = setTimeout(() => (prefix = ""), 900);
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing) return;
  const names = namesOf(event);
  const isModified = names[0]?.startsWith("mod+");
  if (!isModified && event.key !== "Escape" && (!singleKeysOn || isTyping(event.target))) return;
  if (event.key === "Escape" && isTyping(event.target)) return closeMenu() || event.target.blur();
  if (sheet?.open) return;
  if (!isModified && prefix) {
    const joined = `${prefix} ${event.key}`;
    prefix = "";
    if (run(joined, event)) return event.preventDefault();
  }
  if (event.key === "g" && !isModified && !event.altKey) return remember("g");
  if (names.some((name) => run(name, event))) event.preventDefault();
});

// The link in the bar leads to the list of keys on a page; with scripts it opens the sheet in place.
document.querySelector('[data-key="?"]')?.addEventListener("click", (event) => {
  if (event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (openSheet()) event.preventDefault();
});
sheet?.addEventListener("click", (event) => {
  if (event.target === sheet) sheet.close();
});
