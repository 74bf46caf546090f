// `<button data-copy="text" hidden>` or `data-copy-from="#id"`; shown only where copying works.
function arm(scope) {
  for (const button of scope.querySelectorAll("[data-copy][hidden], [data-copy-from][hidden]")) button.hidden = false;
}

function textOf(button) {
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
  const button = event.target.closest?.("[data-copy], [data-copy-from]");
  if (!button) return;
  event.preventDefault();
  const words = button.querySelector("[data-copy-words]") ?? button;
  const before = (button.dataset.words ??= words.textContent);
  try {
    await write(textOf(button));
    words.textContent = "copied";
  } catch {
    words.textContent = "not copied";
  }
  words.setAttribute("aria-live", "polite");
  setTimeout(() => (words.textContent = before), 1500);
});

arm(document);
document.addEventListener("htmx:load", (event) => arm(event.target));
