// A menu closes when the focus or a click goes elsewhere; two are never open at once.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
document.addEventListener("focusin", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
// Arrow keys walk an open menu, as they do in menus of the system; in its fields they move the caret.
document.addEventListener("keydown", (event) => {
  const menu = event.target.closest?.("details.menu[open]");
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!menu || !by || event.target.matches("input, textarea, select")) return;
  const controls = [...menu.querySelectorAll("a, button, input, summary")].filter((each) => each.checkVisibility());
  const next = controls[controls.indexOf(event.target) + by];
  if (!next) return;
  event.preventDefault();
  next.focus();
});
