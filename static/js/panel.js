// The right panel is as wide as it was left: its edge `.panel-edge` is dragged or moved by arrow keys.
const panel = document.querySelector(".panel");
const NAME = "panel";

function setWidth(width) {
  const fitting = Math.round(Math.min(Math.max(width, 320), innerWidth * 0.7));
  document.documentElement.style.setProperty("--panel-width", `${fitting}px`);
  edge?.setAttribute("aria-valuenow", fitting);
  return fitting;
}

function keep(width) {
  document.cookie = `${NAME}=${width}; path=/; max-age=31536000; samesite=lax`;
}

function makeEdge() {
  const made = document.createElement("div");
  made.className = "panel-edge";
  made.tabIndex = 0;
  for (const [name, value] of [["role", "separator"], ["aria-orientation", "vertical"], ["aria-label", "Width of the panel"], ["aria-valuemin", "320"], ["aria-valuemax", String(Math.round(innerWidth * 0.7))]]) made.setAttribute(name, value);
  panel.prepend(made);
  return made;
}

const edge = panel && makeEdge();
const kept = Number(document.cookie.match(/(?:^|; )panel=(\d+)/)?.[1]);
if (panel) setWidth(kept || panel.getBoundingClientRect().width);

edge?.addEventListener("pointerdown", (event) => {
  event.preventDefault();
  edge.setPointerCapture(event.pointerId);
  const move = (to) => setWidth(innerWidth - to.clientX);
  edge.addEventListener("pointermove", move);
  edge.addEventListener("pointerup", (to) => {
    edge.removeEventListener("pointermove", move);
    keep(setWidth(innerWidth - to.clientX));
  }, { once: true });
});
edge?.addEventListener("keydown", (event) => {
  const by = { ArrowLeft: 24, ArrowRight: -24 }[event.key];
  if (!by) return;
  event.preventDefault();
  keep(setWidth(panel.getBoundingClientRect().width + by));
});
