// Extras of the forms of forks and replays: editing ticks the change, the server checks while one types.
const form = document.getElementById("fork");
const touched = new Set();
let asking = null;
let timer = 0;

// --- one change

function tickOf(element) {
  return element.closest("[data-card]")?.querySelector('.tick > input[name^="use_"]');
}

form.addEventListener("input", ({ target }) => {
  if (target.name) touched.add(target.name);
  const tick = tickOf(target);
  tick?.parentElement.removeAttribute("data-when-edited");
  if (tick && target !== tick && !target.matches("[data-shows]")) tick.checked = true;
  if (target.name === "result") {
    for (const preset of ticked()) preset.checked = false;
    typed = null;
  }
  if (target.name === "preset") answer();
  arrange();
});

// --- presets of a tool's answer

let typed = null; // what stood there before the first one was ticked

const ticked = () => [...form.querySelectorAll('[name="preset"]:checked')];

function answer() {
  const { result, result_as: kind } = form.elements;
  const [first, ...others] = ticked();
  if (first) typed ??= [result.value, kind.value];
  if (first && !others.length && "text" in first.dataset) [result.value, kind.value] = [first.dataset.text, first.dataset.as];
  if (!first && typed) [result.value, kind.value] = typed;
  if (!first) typed = null;
}

function countForks() {
  const place = form.querySelector("[data-queue]");
  const count = form.elements.use_result?.checked ? ticked().length : 0;
  const what = form.elements.sampling?.checked ? "sampling" : count > 1 ? `${count} forks` : "fork";
  if (place) place.textContent = `Queue ${what}`;
}

// --- what is shown

// Only what the chosen way needs; without scripts all of it is there.
function arrange() {
  const kind = form.elements.expect_kind?.value;
  for (const part of form.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(kind);
  for (const part of form.querySelectorAll("[data-of-error]")) part.hidden = form.elements.result_as.value !== "error";
  for (const part of form.querySelectorAll("[data-of-one]")) part.hidden = ticked().length > 1;
  countForks();
}

// --- the server

async function ask(what) {
  asking?.abort();
  asking = new AbortController();
  const body = new FormData(form);
  body.set("do", what);
  const answer = await fetch(form.action, { method: "POST", body, signal: asking.signal, credentials: "same-origin" });
  if (!answer.ok) throw new Error(String(answer.status));
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// Another message or step was chosen: its card comes back with what was recorded there.
async function show(card) {
  const page = await ask("show");
  const focused = document.activeElement?.id;
  card.replaceWith(document.importNode(page.getElementById(card.id), true));
  typed = null;
  if (focused) document.getElementById(focused)?.focus();
  arrange();
}

async function check() {
  const page = await ask("check");
  for (const place of form.querySelectorAll("[data-error]")) {
    const found = page.querySelector(`[data-error="${CSS.escape(place.dataset.error)}"]`);
    if (found && touched.has(place.dataset.error)) say(place, found.textContent);
  }
  document.getElementById("fork-check").replaceChildren(...page.getElementById("fork-check").childNodes);
  for (const place of document.querySelectorAll("[data-fresh]")) refresh(place, page.getElementById(place.id));
}

function refresh(place, fresh) {
  if (fresh) place.replaceChildren(...fresh.childNodes);
}

function say(place, words) {
  place.textContent = words;
  place.hidden = !words;
  const input = document.getElementById(`in-${place.dataset.error}`);
  if (words) input?.setAttribute("aria-invalid", "true");
  else input?.removeAttribute("aria-invalid");
}

// Without an answer the form goes on as without scripts.
const quietly = (work) => work.catch(() => {});

if (document.getElementById("fork-check") && form.querySelector('[value="queue"]')) {
  form.addEventListener("change", ({ target }) => {
    clearTimeout(timer);
    if (target.matches("[data-shows]")) quietly(show(target.closest("[data-card]")));
    else timer = setTimeout(() => quietly(check()), 150);
  });
}
form.addEventListener("submit", () => {
  clearTimeout(timer);
  asking?.abort();
});
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || form.contains(event.target)) return;
  event.preventDefault();
  form.requestSubmit();
});

// --- after an error

// `… (line 2, column 10).` leads to that character.
document.getElementById("fork-errors")?.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  const area = link && document.querySelector(link.hash);
  const place = link?.textContent.match(/\(line (\d+), column (\d+)\)/);
  if (!area?.matches("textarea") || !place) return;
  event.preventDefault();
  const before = area.value.split("\n").slice(0, place[1] - 1);
  const at = before.reduce((sum, line) => sum + line.length + 1, 0) + Number(place[2]) - 1;
  area.focus();
  area.setSelectionRange(at, at);
});
if (!form.querySelector('[aria-invalid="true"]')) document.querySelector('#fork-errors, #in-changes[role="alert"]')?.focus(); // otherwise app.js
arrange();
