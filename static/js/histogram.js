// The histogram above the list: arrow keys move between its bars, dragging over several narrows to all of them.
const chart = () => document.querySelector(".histogram svg");
const links = () => [...(chart()?.querySelectorAll("a") ?? [])];

document.addEventListener("keydown", (event) => {
  const at = links().indexOf(event.target.closest?.(".histogram a"));
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (at < 0 || !by) return;
  event.preventDefault();
  const next = links()[at + by];
  if (!next) return;
  links()[at].setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
});

const NS = "http://www.w3.org/2000/svg";
let drag = null;
let dragged = false;

function placeOf(event) {
  const box = chart().getBoundingClientRect();
  return Math.min(Math.max(((event.clientX - box.left) / box.width) * 1200, 0), 1200);
}

document.addEventListener("pointerdown", (event) => {
  dragged = false;
  if (event.button || !event.target.closest?.(".histogram svg")) return;
  drag = { from: placeOf(event), area: null };
});
document.addEventListener("pointermove", (event) => {
  if (!drag || !chart()) return;
  const to = placeOf(event);
  if (!drag.area && Math.abs(to - drag.from) < 12) return;
  if (!drag.area) {
    drag.area = document.createElementNS(NS, "rect");
    drag.area.setAttribute("class", "drag-area");
    drag.area.setAttribute("height", "56");
    chart().append(drag.area);
  }
  drag.area.setAttribute("x", Math.min(drag.from, to));
  drag.area.setAttribute("width", Math.abs(to - drag.from));
});
document.addEventListener("pointerup", (event) => {
  if (drag?.area) {
    dragged = true;
    drag.area.remove();
    narrow(...[drag.from, placeOf(event)].sort((a, b) => a - b));
  }
  drag = null;
});
// The bar under the pointer is a link: letting go of a drag is no click on it.
document.addEventListener("click", (event) => dragged && event.target.closest?.(".histogram") && event.preventDefault(), true);
document.addEventListener("dragstart", (event) => event.target.closest?.(".histogram") && event.preventDefault());

function narrow(from, to) {
  const inside = links().filter((link) => {
    const bar = link.querySelector(".bar-space");
    const x = Number(bar.getAttribute("x"));
    return x + Number(bar.getAttribute("width")) >= from && x <= to;
  });
  if (!inside.length) return;
  const address = new URL(inside[0].getAttribute("href"), location.href);
  address.searchParams.set("to", new URL(inside.at(-1).getAttribute("href"), location.href).searchParams.get("to"));
  location.assign(address);
}

// Where there is room the facets stand open beside the list; else they wait behind their button.
function foldFacets(scope) {
  const sheet = scope.querySelector(".facets-sheet");
  if (sheet && matchMedia("(max-width: 1239px)").matches) sheet.open = false;
}
foldFacets(document);
document.addEventListener("htmx:load", (event) => foldFacets(event.target));
