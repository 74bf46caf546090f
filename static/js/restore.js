// Back to a list finds it as it was: the rows that were loaded, the place, and the row that had the focus.
const NAME = "list-places";
const KEPT = 20;
const MOST_LOADS = 20;

const table = () => document.querySelector("table.sessions");
const rows = () => document.querySelectorAll("table.sessions tr[data-row]");

function here() {
  const address = new URL(location.href);
  for (const name of ["peek", "select"]) address.searchParams.delete(name);
  return address.pathname + address.search;
}

function places() {
  try {
    return JSON.parse(sessionStorage.getItem(NAME)) ?? {};
  } catch {
    return {};
  }
}

let listed = here();

function remember() {
  if (!table()) return;
  const kept = places();
  delete kept[listed];
  const row = document.activeElement?.closest?.("tr[data-row]")?.querySelector("a[data-row-link]");
  kept[listed] = { rows: rows().length, y: scrollY, row: row?.getAttribute("href") ?? null };
  try {
    sessionStorage.setItem(NAME, JSON.stringify(Object.fromEntries(Object.entries(kept).slice(-KEPT))));
  } catch {
    // Storage is full or switched off: the list begins at its top.
  }
}

addEventListener("pagehide", remember);
document.addEventListener("htmx:beforeRequest", (event) => event.detail.target?.id === "main" && remember());
document.addEventListener("htmx:pushedIntoHistory", () => {
  listed = here();
});

function loadMore() {
  const link = document.querySelector("#more a");
  if (!link) return Promise.resolve(false);
  return new Promise((done) => {
    const onEnd = (event) => {
      if (event.detail.target?.id !== "more") return;
      document.removeEventListener("htmx:afterRequest", onEnd);
      setTimeout(() => done(event.detail.successful), 0);
    };
    document.addEventListener("htmx:afterRequest", onEnd);
    link.click();
  });
}

async function restore() {
  const place = places()[listed];
  if (!place || !table()) return;
  for (let loads = 0; rows().length < place.rows && loads < MOST_LOADS; loads += 1) if (!(await loadMore())) break;
  if (place.row) document.querySelector(`table.sessions a[data-row-link][href="${CSS.escape(place.row)}"]`)?.focus({ preventScroll: true });
  scrollTo(0, place.y);
}

const [navigation] = performance.getEntriesByType("navigation");
if (["back_forward", "reload"].includes(navigation?.type)) addEventListener("load", restore, { once: true });
