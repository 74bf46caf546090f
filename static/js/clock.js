// Times come in UTC; `z` shows them in the zone of this browser. Relative ones keep counting.
const button = document.querySelector(".bar-clock");
const offset = -new Date().getTimezoneOffset();
const MINE = offset ? `UTC${offset > 0 ? "+" : "−"}${Math.floor(Math.abs(offset) / 60)}${Math.abs(offset) % 60 ? `:${String(Math.abs(offset) % 60).padStart(2, "0")}` : ""}` : "UTC";
let mode = /(?:^|; )clock=mine/.test(document.cookie) ? "mine" : "utc";

const two = (number) => String(number).padStart(2, "0");

function inMode(date) {
  const shifted = mode === "mine" ? new Date(date.getTime() + offset * 60000) : date;
  const day = `${shifted.getUTCFullYear()}-${two(shifted.getUTCMonth() + 1)}-${two(shifted.getUTCDate())}`;
  return `${day} ${two(shifted.getUTCHours())}:${two(shifted.getUTCMinutes())}:${two(shifted.getUTCSeconds())}`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function day(date) {
  const full = inMode(date);
  const [year, month, of] = full.slice(0, 10).split("-");
  if (Number(year) !== new Date().getUTCFullYear()) return full.slice(0, 10);
  return `${Number(of)} ${MONTHS[Number(month) - 1]} ${full.slice(11, 16)}`;
}

function relative(date) {
  const seconds = Math.floor((Date.now() - date) / 1000);
  if (seconds < 0 || seconds >= 86400) return day(date);
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return `${Math.floor(seconds / 3600)} h ago`;
}

function showTimes(scope) {
  for (const time of scope.querySelectorAll("time[data-moment], time[data-ago]")) {
    const date = new Date(time.dateTime);
    const words = "ago" in time.dataset ? relative(date) : inMode(date);
    if (time.textContent !== words) time.textContent = words;
  }
  if (button) button.textContent = mode === "mine" ? MINE : "UTC";
}

if (button) {
  button.hidden = false;
  button.title = "Times in UTC or in my zone (z)";
  button.addEventListener("click", () => {
    mode = mode === "mine" ? "utc" : "mine";
    document.cookie = `clock=${mode}; path=/; max-age=31536000; samesite=lax`;
    showTimes(document);
  });
}
showTimes(document);
document.addEventListener("htmx:load", (event) => showTimes(event.target));
setInterval(() => document.hidden || showTimes(document), 15000);
