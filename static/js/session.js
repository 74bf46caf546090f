// Steps beside their list: links with data-step are followed in place, and the neighbours are fetched before they are asked for.
const body = document.getElementById("steps");
const panel = document.getElementById("panel");
const narrow = matchMedia("(max-width: 900px)");
const kept = new Map();
const KEEP = 60;
// The server alone knows what a run restored to a step may show, so every link of such a page is followed as it stands.
const isRestored = new URL(location.href).searchParams.has("at_step");
const isLive = body && panel && !isRestored;

const shownStep = () => Number(panel?.querySelector("[data-shown]")?.dataset.shown ?? 0);

function panelAddress(index) {
  const query = new URLSearchParams();
  if (body.dataset.run) query.set("run", body.dataset.run);
  if (new URL(location.href).searchParams.get("inner") === "show") query.set("inner", "show");
  const address = body.dataset.panel.replace(/\/0$/, `/${index}`);
  return query.size ? `${address}?${query}` : address;
}

// A run that still grows may change its steps, so nothing of it is kept.
function fetchPanel(index) {
  if (kept.has(index)) return kept.get(index);
  const got = fetch(panelAddress(index), { headers: { "HX-Request": "true" }, credentials: "same-origin" }).then((answer) => {
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.text();
  });
  got.catch(() => kept.delete(index));
  if (body.dataset.settled) kept.set(index, got);
  if (kept.size > KEEP) kept.delete(kept.keys().next().value);
  return got;
}

function rowOf(index) {
  const row = document.getElementById(`s${index}`);
  return row ?? [...body.querySelectorAll(".fold")].find((fold) => Number(fold.dataset.first) <= index && index <= Number(fold.dataset.last));
}

function pick(index) {
  body.classList.remove("is-unopened");
  for (const row of body.querySelectorAll("tr.is-picked")) row.classList.remove("is-picked");
  for (const link of body.querySelectorAll('.steps a[aria-current]')) link.removeAttribute("aria-current");
  const row = rowOf(index);
  row.classList.add("is-picked");
  row.querySelector("a[data-step]")?.setAttribute("aria-current", "true");
  row.scrollIntoView({ block: "nearest" });
  if (row.dataset.x) document.getElementById("playhead")?.setAttribute("x", row.dataset.x);
}

function addressOf(index) {
  const address = new URL(location.href);
  address.searchParams.set("step", index);
  address.searchParams.delete("at");
  address.searchParams.delete("what_if");
  address.hash = "";
  return address;
}

// While something is looked for, n and N walk its hits, from the step that is shown.
const walk = document.querySelector(".find-walk");
const hits = (walk?.dataset.hits || "").split(",").filter(Boolean).map(Number);

function walkFrom(index) {
  if (!walk) return;
  for (const link of panel.querySelectorAll('[data-key="n"], [data-key="N"]')) {
    link.removeAttribute("data-key");
    link.querySelector("kbd")?.remove();
  }
  const at = hits.indexOf(index);
  walk.querySelector("[data-hit-at]").textContent = at < 0 ? "–" : at + 1;
  if (!hits.length) return;
  lead(walk.querySelector('[data-key="N"]'), hits.findLast((hit) => hit < index));
  lead(walk.querySelector('[data-key="n"]'), hits.find((hit) => hit > index));
}

function lead(link, index) {
  link.hidden = index === undefined;
  if (link.hidden) return;
  link.dataset.step = index;
  link.href = `${addressOf(index)}#s${index}`;
}

async function showStep(index, { push }) {
  let html;
  try {
    html = await fetchPanel(index);
  } catch {
    location.assign(addressOf(index));
    return;
  }
  const focused = panel.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const edge = panel.querySelector(".panel-edge");
  panel.innerHTML = html;
  if (edge) panel.prepend(edge);
  panel.scrollTop = 0;
  window.htmx?.process(panel);
  document.dispatchEvent(new CustomEvent("htmx:load", { detail: { elt: panel } }));
  for (const button of panel.querySelectorAll("[data-copy][hidden]")) button.hidden = false;
  if (focused) panel.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  walkFrom(index);
  if (push) history.pushState({ step: index }, "", addressOf(index));
  pick(index);
  for (const near of [index + 1, index - 1]) if (panel.querySelector(`[data-step="${near}"]`)) fetchPanel(near).catch(() => {});
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-step]");
  if (!link || !isLive || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const index = Number(link.dataset.step);
  if (narrow.matches) {
    if (walk?.contains(link)) return;
    event.preventDefault();
    location.assign(panelAddress(index));
    return;
  }
  event.preventDefault();
  if (!rowOf(index)) {
    location.assign(addressOf(index));
    return;
  }
  if (walk && !hits.length && walk.contains(link)) location.assign(addressOf(index));
  else showStep(index, { push: index !== shownStep() });
});

// What is asked of a step in place is part of the address, as everything that is shown. The form takes the focus with it.
document.addEventListener("htmx:afterSwap", ({ detail: { elt, requestConfig } }) => {
  if (elt.id !== "what-if") return;
  elt.querySelector(requestConfig.verb === "post" ? "h2" : "textarea")?.focus({ preventScroll: true });
  const address = new URL(location.href);
  address.searchParams.set("what_if", elt.dataset.whatIf);
  if (panel) address.searchParams.set("step", shownStep());
  history.replaceState(history.state, "", address);
});

// A press on the ruler goes to that part of the run.
document.querySelector(".ruler")?.addEventListener("click", (event) => {
  const ruler = event.currentTarget;
  const box = ruler.getBoundingClientRect();
  const last = Number(ruler.dataset.last);
  location.assign(addressOf(Math.max(1, Math.min(last, Math.round(((event.clientY - box.top) / box.height) * last)))));
});

addEventListener("popstate", () => {
  if (!isLive) return;
  const index = Number(new URL(location.href).searchParams.get("step"));
  if (index && rowOf(index)) showStep(index, { push: false });
  else location.reload();
});

if (isLive && !narrow.matches) {
  const index = shownStep();
  const row = rowOf(index);
  if (new URL(location.href).searchParams.has("step") && row && scrollY === 0 && row.getBoundingClientRect().bottom > innerHeight) row.scrollIntoView({ block: "center" });
  for (const near of [index + 1, index - 1]) if (panel.querySelector(`[data-step="${near}"]`)) fetchPanel(near).catch(() => {});
}

// Of many runs the one that was asked for is in sight, among the tabs and in the conversation.
document.querySelector(".runs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
if (!location.hash) {
  document.querySelector(".turn ~ .turn-shown")?.scrollIntoView();
}

// The page that the menu opens to be printed.
if (new URL(location.href).searchParams.has("print")) print();
