// Under the top box: a search for what is typed, what can be done on this page, pages, sessions, saved queries, tags, help. The first row is chosen:
// an action of the page whose name begins with the very words that are typed, or what is called by these words alone, stands before the search.
import { isOffered, use } from "./keys.js";

const box = document.querySelector(".bar-find input[role=combobox]");
const list = document.getElementById("palette");
let isKnown = false;
let picked = null;
let timer = 0;

const options = () => [...list.querySelectorAll("[role=option]")];
const offered = () => options().filter((option) => !option.hidden);

function wordsOf(control) {
  const copy = control.cloneNode(true);
  for (const part of copy.querySelectorAll("kbd, svg, .count, [hidden]")) part.remove();
  return (control.getAttribute("aria-label") || copy.textContent).replace(/\s+/g, " ").trim();
}

function row(words, ...hints) {
  const option = document.createElement("li");
  option.setAttribute("role", "option");
  const told = Object.assign(document.createElement("span"), { className: "cut", textContent: words });
  told.dataset.words = "";
  option.append(told, ...hints.map((hint) => Object.assign(document.createElement("kbd"), { textContent: hint })));
  return option;
}

function group(title) {
  const rows = document.createElement("ul");
  rows.setAttribute("role", "group");
  rows.setAttribute("aria-label", title);
  return rows;
}

// Neither what opens a menu nor what belongs to a form in one is an action by itself.
const NO_ACTION = "details, input, summary:not([data-key]), .diff-form *, .decided a, [data-key=Esc], [data-row] *";

// Replay and Fork stand first: a run is opened for them.
const LEADING = ["Shift+R", "f"];
const place = (control) => LEADING.indexOf(control.dataset.key) + 1 || Infinity;
const byUse = (a, b) => (place(a) === place(b) ? 0 : place(a) - place(b));

function actions() {
  const controls = [...document.querySelectorAll("main [data-key], .head-next .btn")].filter((one) => !one.matches(NO_ACTION) && isOffered(one)).sort(byUse);
  const rows = group("This page");
  const seen = new Set();
  for (const control of controls) {
    const words = wordsOf(control);
    if (!words || seen.has(words)) continue;
    seen.add(words);
    const key = control.dataset.key?.replace("Shift+", "⇧ ");
    const option = row(words, ...(key ? [key] : []));
    option.act = () => use(control);
    rows.append(option);
  }
  return seen.size ? [rows] : [];
}

const search = row("", "↵");
search.act = () => box.form.requestSubmit();
const searches = Object.assign(group("Search"), { rank: -1, place: -1 });
searches.append(search);

async function open() {
  if (!isKnown) {
    isKnown = true;
    const answer = await fetch(list.dataset.from, { headers: { "HX-Request": "true" } });
    if (answer.ok) list.innerHTML = await answer.text();
    list.prepend(searches, ...actions());
    number();
  }
  offer();
  // What was typed before the list had come.
  await find();
}

function number() {
  options().forEach((option, at) => {
    option.id = `palette-${at}`;
    option.place ??= at;
    option.told ??= [...option.querySelectorAll("[data-words]")].map((part) => [part, part.textContent]);
    option.words ??= [...option.told.map(([, words]) => words), option.dataset.also].join(" ");
  });
}

// Sessions beyond the newest: the server looks among all of them.
async function find() {
  const asked = box.value.trim();
  const group = list.querySelector("[data-sessions]");
  if (asked.length < 3 || !group) return;
  const answer = await fetch(`${list.dataset.from}?q=${encodeURIComponent(asked)}`, { headers: { "HX-Request": "true" } });
  const page = new DOMParser().parseFromString(answer.ok ? await answer.text() : "", "text/html");
  if (box.value.trim() !== asked) return;
  for (const old of group.querySelectorAll("[data-found]")) old.remove();
  const known = new Set([...group.children].map((option) => option.dataset.to));
  for (const option of page.querySelectorAll("[role=option]")) {
    if (known.has(option.dataset.to)) continue;
    option.dataset.found = "";
    group.append(option);
  }
  const chosen = picked;
  number();
  offer();
  if (chosen && !chosen.hidden) pick(chosen);
}

// One wrong, missing, surplus or swapped letter in what a word begins with.
function isNear(part, word) {
  let same = 0;
  while (same < part.length && part[same] === word[same]) same++;
  const typed = part.slice(same);
  const meant = word.slice(same);
  const isOneOff = [typed, typed.slice(1)].some((rest) => meant.slice(1).startsWith(rest)) || meant.startsWith(typed.slice(1));
  return isOneOff || (typed.length > 1 && meant.startsWith(typed[1] + typed[0] + typed.slice(2)));
}

// From here on a letter is wrong, which is forgiven where nothing holds what was typed.
const NEAR = 10;

// Words that begin with what is typed, then those that hold it, then those that it is near to.
function rank(words, part) {
  if (words.some((word) => word.startsWith(part))) return 0;
  if (words.some((word) => word.includes(part))) return 1;
  return part.length > 3 && words.some((word) => isNear(part, word)) ? NEAR : Infinity;
}

const wordsIn = (text) => text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);

// Rows of each group before anything was typed.
const FEW = 6;

function rankOf(option, asked) {
  const words = wordsIn(option.words);
  const begins = asked.length && asked.every((part, at) => words[at] === part);
  if (begins && (option.act || words.length === asked.length)) return -2;
  return asked.reduce((sum, part) => sum + rank(words, part), 0);
}

const byRank = (a, b) => a.rank - b.rank || a.place - b.place;

function offer() {
  const asked = wordsIn(box.value);
  const groups = [...list.children].filter((group) => group !== searches);
  const rows = groups.flatMap((group) => [...group.children]);
  for (const option of rows) option.rank = rankOf(option, asked);
  const worst = rows.some((option) => option.rank < NEAR) ? NEAR : Infinity;
  for (const option of rows) {
    if (option.rank >= worst) option.rank = Infinity;
    mark(option, asked);
  }
  for (const group of groups) {
    group.replaceChildren(...[...group.children].sort(byRank));
    const most = asked.length ? Infinity : FEW;
    [...group.children].forEach((option, at) => (option.hidden = option.rank === Infinity || at >= most));
    if ("sessions" in group.dataset) group.setAttribute("aria-label", asked.length ? "Sessions" : "Recent sessions");
    group.rank = group.firstElementChild.rank;
    group.place = Math.min(...[...group.children].map((option) => option.place));
    group.hidden = group.rank === Infinity;
  }
  searches.hidden = search.hidden = !box.value.trim();
  search.firstElementChild.textContent = `Search sessions for ${box.value.trim()}`;
  list.append(...[searches, ...groups].sort(byRank));
  show(document.activeElement === box && offered().length > 0);
  pick(list.hidden ? null : offered()[0]);
}

// A session that is found by the id of its run shows that id in place of what was asked.
function mark(option, asked) {
  const told = option.told.map(([, words]) => words);
  const isById = asked.length && option.dataset.also && !asked.some((part) => told.join(" ").toLowerCase().includes(part));
  for (const [at, [part]] of option.told.entries()) {
    const words = isById && at ? option.dataset.also : told[at];
    const near = option.rank < NEAR ? [] : wordsIn(words).filter((word) => asked.some((each) => isNear(each, word)));
    const pieces = asked.length ? words.split(new RegExp(`(${[...asked, ...near].join("|")})`, "giu")) : [words];
    part.replaceChildren(...pieces.map((piece, at) => (at % 2 ? Object.assign(document.createElement("mark"), { textContent: piece }) : piece)));
  }
}

function show(isOpen) {
  list.hidden = !isOpen;
  box.setAttribute("aria-expanded", isOpen);
  if (!isOpen) pick(null);
}

function pick(option) {
  picked?.removeAttribute("aria-selected");
  picked = option;
  if (!option) return box.removeAttribute("aria-activedescendant");
  option.setAttribute("aria-selected", "true");
  option.scrollIntoView({ block: "nearest" });
  box.setAttribute("aria-activedescendant", option.id);
}

function act(option) {
  show(false);
  box.blur();
  if (option.dataset.to) location.assign(option.dataset.to);
  else option.act();
}

function move(by) {
  const all = offered();
  pick(all[(all.indexOf(picked) + by + all.length) % all.length]);
}

box?.addEventListener("focus", () => open().catch(() => (isKnown = false)));
box?.addEventListener("input", () => {
  offer();
  clearTimeout(timer);
  timer = setTimeout(() => find().catch(() => {}), 200);
});
box?.addEventListener("blur", () => show(false));
box?.addEventListener("keydown", (event) => {
  if (list.hidden) return;
  if (event.key === "ArrowDown") move(1);
  else if (event.key === "ArrowUp") move(-1);
  else if (event.key === "Enter" && picked) act(picked);
  else return;
  event.preventDefault();
});
// The box keeps the focus while an option is pressed.
list?.addEventListener("mousedown", (event) => event.preventDefault());
list?.addEventListener("click", (event) => {
  const option = event.target.closest("[role=option]");
  if (option) act(option);
});
