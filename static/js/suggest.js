// Completes the part of the query that is being written, with values that this project has seen.
// A browser compares what it offers with the whole text, so each offer carries the parts before it.
const input = document.getElementById("query");
const list = () => document.getElementById("query-keys");
const MOST = 30;
let known = null;

const read = (html) => [...new DOMParser().parseFromString(`<datalist>${html}</datalist>`, "text/html").querySelectorAll("option")];

async function learn() {
  if (known) return;
  known = [...list().options].map((option) => ({ part: option.value, words: option.textContent }));
  const answer = await fetch(list().dataset.from, { headers: { "HX-Request": "true" } });
  if (answer.ok) known = read(await answer.text()).map((option) => ({ part: option.value, words: option.textContent }));
  offer(document.getElementById("query"));
}

// The last part as it stands: quotes and parentheses keep their spaces.
function split(text) {
  const part = text.match(/(?:"[^"]*"?|\([^)]*\)?|[^\s"(])*$/)[0];
  const minus = part.startsWith("-") ? "-" : "";
  return { before: text.slice(0, text.length - part.length) + minus, part: part.slice(minus.length).toLowerCase() };
}

function offer(field) {
  if (!known || field.selectionStart !== field.value.length) return;
  const { before, part } = split(field.value);
  const fitting = known.filter((one) => one.part.toLowerCase().startsWith(part) && one.part.toLowerCase() !== part);
  list().replaceChildren(...fitting.slice(0, MOST).map((one) => {
    const option = document.createElement("option");
    option.value = before + one.part;
    option.textContent = one.words;
    return option;
  }));
}

const isQuery = (event) => event.target.id === "query";
document.addEventListener("focusin", (event) => isQuery(event) && learn().catch(() => (known = null)));
document.addEventListener("input", (event) => isQuery(event) && offer(event.target));
if (document.activeElement === input) learn().catch(() => (known = null));
