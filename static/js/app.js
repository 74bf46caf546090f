// Extras of every page. Pages work without any of this.
import "./keys.js";
import "./live.js";
import "./copy.js";
import "./clock.js";
import "./panel.js";
import "./menus.js";
import "./palette.js";

// A value that is typed is meant: it ticks what it belongs to.
document.addEventListener("input", ({ target }) => {
  const tick = target.closest("[data-ticks]")?.querySelector("[type=checkbox]");
  if (tick && tick !== target) tick.checked = true;
});

// Where a row of links is wider than the screen, the one in force is in view.
for (const chosen of document.querySelectorAll(":is(.bar-nav, .quick) [aria-current]")) {
  const row = chosen.closest(".bar-nav, .quick");
  const [at, from] = [chosen, row].map((each) => each.getBoundingClientRect().left);
  row.scrollLeft += at - from - (row.clientWidth - chosen.offsetWidth) / 2;
}

// A form that says whether it was changed since it was read.
for (const form of document.querySelectorAll("form[data-watched]")) {
  const read = () => new URLSearchParams([...new FormData(form)].filter(([, value]) => typeof value === "string")).toString();
  const saved = read();
  form.addEventListener("input", () => {
    const isChanged = read() !== saved;
    form.classList.toggle("is-changed", isChanged);
    form.querySelector("[role=status]").textContent = isChanged ? "Changed, not saved" : "";
  });
}

// A box that leaves of the rows of its form those that hold its words; groups open for them.
for (const box of document.querySelectorAll("[data-narrows]")) {
  box.hidden = false;
  const holds = (row) => row.textContent.toLowerCase().includes(box.value.trim().toLowerCase());
  box.addEventListener("input", () => {
    for (const row of box.form.querySelectorAll(box.dataset.narrows)) row.hidden = !holds(row);
    for (const group of box.form.querySelectorAll("details")) group.open = box.value && group.querySelector("tr:not([hidden]) td");
  });
  box.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
}

// After an error the first field that holds one is where to go on.
document.querySelector('main [aria-invalid="true"]')?.focus();
