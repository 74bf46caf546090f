// n and N go from change to change; the focus goes along, so that reading on starts there.
const jump = document.querySelector(".jump");
const changes = [...document.querySelectorAll("[data-change]")];

function go(by) {
  const top = document.querySelector(".runs-head").getBoundingClientRect().bottom + 4;
  const tops = changes.map((change) => change.getBoundingClientRect().top - top);
  const here = changes.indexOf(document.activeElement);
  const next = here >= 0 ? here + by : by > 0 ? tops.findIndex((y) => y > 4) : tops.findLastIndex((y) => y < -4);
  const change = changes[next];
  if (!change) return;
  change.tabIndex = -1;
  change.focus({ preventScroll: true });
  change.scrollIntoView({ block: "start" });
}

if (jump && changes.length) {
  jump.hidden = false;
  jump.querySelector('[data-key="n"]').addEventListener("click", () => go(1));
  jump.querySelector('[data-key="N"]').addEventListener("click", () => go(-1));
}

// e marks the pair that one reads: the one in focus, else the first that was not viewed yet.
document.addEventListener("focusin", (event) => {
  const button = event.target.closest?.(".pair")?.querySelector(".viewed");
  if (!button || button.dataset.key) return;
  document.querySelector('.viewed[data-key="e"]')?.removeAttribute("data-key");
  button.dataset.key = "e";
});
