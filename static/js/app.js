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

// After an error the first field that holds one is where to go on.
document.querySelector('main [aria-invalid="true"]')?.focus();
