// `<button data-copy="text" hidden>`, `data-copy-from="#id"` or `data-copy-address="/a/file"`; shown only where copying works.
const BUTTONS = "[data-copy], [data-copy-from], [data-copy-address]";

function arm(scope) {
  for (const button of scope.querySelectorAll(BUTTONS)) button.hidden = false;
}

async function textOf(button) {
  if (button.dataset.copyAddress) {
    const answer = await fetch(button.dataset.copyAddress);
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.text();
  }
  if (button.dataset.copyFrom) return document.querySelector(button.dataset.copyFrom)?.textContent ?? "";
  return button.dataset.copy === "link" ? location.href : button.dataset.copy;
}

async function write(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Without HTTPS there is no clipboard API.
  const area = document.createElement("textarea");
  area.value = text;
  area.setAttribute("readonly", "");
  area.className = "only-read";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("refused");
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.(BUTTONS);
  if (!button) return;
  event.preventDefault();
  const words = button.querySelector("[data-copy-words]") ?? button;
  const before = (button.dataset.words ??= words.textContent);
  try {
    await write(await textOf(button));
    words.textContent = "copied";
  } catch {
    words.textContent = "not copied";
  }
  words.setAttribute("aria-live", "polite");
  setTimeout(() => (words.textContent = before), 1500);
});

arm(document);
document.addEventListener("htmx:load", (event) => arm(event.target));
