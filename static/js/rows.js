// Rows of a list or of steps: `tr[data-row]`, each with one link that is the row's own.
const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.getClientRects().length);

export function rowInFocus() {
  return document.activeElement?.closest?.("[data-row]") ?? null;
}

export function moveRow(by) {
  const all = rows();
  if (!all.length) return false;
  const at = all.indexOf(rowInFocus());
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  (next.querySelector("a[data-row-link]") ?? next.querySelector("a") ?? next).focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}

export function toggleDensity() {
  const table = document.querySelector("[data-density]");
  if (!table) return false;
  const dense = table.dataset.density !== "dense";
  table.dataset.density = dense ? "dense" : "normal";
  document.cookie = `density=${dense ? "dense" : "normal"}; path=/; max-age=31536000; samesite=lax`;
  return true;
}

// The whole row is its link; clicks on other controls and selections of text stay what they are.
document.addEventListener("click", (event) => {
  const row = event.target.closest?.("[data-row]");
  if (!row || event.target.closest("a, button, input, summary, label, details")) return;
  if (String(getSelection())) return;
  const link = row.querySelector("a[data-row-link]");
  if (!link) return;
  if (event.metaKey || event.ctrlKey) window.open(link.href, "_blank", "noopener");
  else link.click();
});
