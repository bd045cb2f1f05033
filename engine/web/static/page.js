// Keys, times in the reader's zone, and a list that refreshes itself without losing the reader's place. Pages work without it.
"use strict";

function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    const local = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
    time.title = time.title ? `${local} (${time.title})` : local;
  }
}

const row = () => document.activeElement && document.activeElement.closest(".row");
const rows = () => [...document.querySelectorAll("#list .row")];

function go(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(row());
  const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1);
  all[next].querySelector("a.title").focus();
  all[next].scrollIntoView({ block: "nearest" });
}

function onKey(event) {
  const typing = event.target.closest("input, select, textarea, [contenteditable]");
  if (event.key === "Escape" && typing) typing.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const search = document.querySelector("input[type=search]");
  const help = document.getElementById("help");
  if (event.key === "/" && search) {
    event.preventDefault();
    search.focus();
    search.select();
  } else if (event.key === "j") go(1);
  else if (event.key === "k") go(-1);
  else if (event.key === "?" && help) help.open ? help.close() : help.showModal();
}

function tell(name, isSo) {
  const notice = document.getElementById(name);
  if (notice) notice.hidden = !isSo;
}

async function refresh() {
  const list = document.getElementById("list");
  if (document.hidden || !list || document.querySelector("dialog[open]")) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  const text = answer && answer.ok ? await answer.text().catch(() => null) : null;
  const fresh = text === null ? null : new DOMParser().parseFromString(text, "text/html");
  const content = fresh && fresh.getElementById("list");
  const refused = answer && [401, 403].includes(answer.status);
  list.classList.toggle("stale", !content);
  tell("ended", refused || (fresh && !content)); // another page came: that where people sign in
  tell("away", !content && !refused && !fresh);
  if (!content) return;
  const focused = row() && row().id;
  const place = window.scrollY;
  list.replaceChildren(...content.childNodes);
  const states = document.querySelector(".states");
  const counts = fresh.querySelector(".states");
  if (states && counts && !states.contains(document.activeElement)) states.replaceChildren(...counts.childNodes);
  document.title = fresh.title;
  localTimes(list);
  const again = focused && document.getElementById(focused);
  if (again) again.querySelector("a.title").focus({ preventScroll: true });
  window.scrollTo(0, place);
}

localTimes(document);
document.addEventListener("keydown", onKey);
const refreshed = document.querySelector("#list[data-refresh]");
if (refreshed && location.protocol.startsWith("http")) {
  setInterval(refresh, 1000 * Number(refreshed.dataset.refresh));
}
