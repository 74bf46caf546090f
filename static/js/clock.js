// Times come in UTC; `z` shows them in the person's own zone. Relative ones keep counting.
const button = document.querySelector(".bar-clock");
const cookie = (name) => decodeURIComponent(document.cookie.match(`(?:^|; )${name}=([^;]*)`)?.[1] ?? "");
const keep = (name, value) => {
  document.cookie = `${name}=${encodeURIComponent(value)}; path=/; max-age=31536000; samesite=lax`;
};
const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
// The server reads times that are typed without an offset in the zone that is shown (web/clock.py).
if (cookie("browser_zone") !== browserZone) keep("browser_zone", browserZone);
let mode = cookie("clock") === "mine" ? "mine" : "utc";

const spell = (timeZone) => new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });
const mine = spellOrBrowser(cookie("zone") || browserZone);
const utc = spell("UTC");

function spellOrBrowser(zone) {
  try {
    return spell(zone);
  } catch {
    return spell(browserZone);
  }
}

function inMode(date) {
  return (mode === "mine" ? mine : utc).format(date);
}

function zoneWords() {
  if (mode !== "mine") return "UTC";
  const parts = new Intl.DateTimeFormat("en", { timeZone: mine.resolvedOptions().timeZone, timeZoneName: "shortOffset" }).formatToParts();
  return parts.find((part) => part.type === "timeZoneName").value.replace("GMT", "UTC").replace("-", "−");
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function day(date) {
  const full = inMode(date);
  const [year, month, of] = full.slice(0, 10).split("-");
  if (Number(year) !== new Date().getUTCFullYear()) return full.slice(0, 10);
  return `${Number(of)} ${MONTHS[Number(month) - 1]} ${full.slice(11, 16)}`;
}

const secondsSince = (date) => Math.floor((Date.now() - date) / 1000);

function lengthOf(seconds) {
  if (seconds < 60) return `${Math.max(seconds, 0)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h`;
}

function relative(date) {
  const seconds = secondsSince(date);
  return seconds < 0 || seconds >= 86400 ? day(date) : `${lengthOf(seconds)} ago`;
}

function wordsOf({ dataset, dateTime }) {
  const date = new Date(dateTime);
  if ("since" in dataset) return lengthOf(secondsSince(date));
  return "ago" in dataset ? relative(date) : inMode(date);
}

function showTimes(scope, which = "time[data-moment], time[data-ago], time[data-since]") {
  for (const time of scope.querySelectorAll(which)) {
    const words = wordsOf(time);
    if (time.textContent !== words) time.textContent = words;
  }
  for (const zone of scope.querySelectorAll("[data-zone]")) zone.textContent = zoneWords();
  if (button) button.textContent = zoneWords();
}

if (button) {
  button.hidden = false;
  button.title = "Times in UTC or in my zone (z)";
  button.addEventListener("click", () => {
    mode = mode === "mine" ? "utc" : "mine";
    keep("clock", mode);
    showTimes(document);
  });
}
showTimes(document);
document.addEventListener("htmx:load", (event) => showTimes(event.target));
setInterval(() => document.hidden || showTimes(document), 15000);
// Of a run that goes on: how long ago its last step was is the first thing to know.
setInterval(() => document.hidden || showTimes(document, "time[data-since], .arriving time"), 1000);
