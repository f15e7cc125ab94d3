// Shortcuts for what links, buttons and forms do without it.
"use strict";
(() => {
  let isSent = false;
  const find = (selector) => document.querySelector(selector);
  const press = (selector) => { const one = find(selector); if (one) one.click(); return Boolean(one); };
  const rows = [...document.querySelectorAll("a.row")];

  const step = (by) => {
    if (!rows.length) return press(by > 0 ? "a[rel=next]" : "a[rel=prev]");
    const at = rows.indexOf(document.activeElement);
    const to = rows[at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + by))];
    to.focus();
    to.scrollIntoView({ block: "nearest" });
    return true;
  };

  const enter = (selector) => { const one = find(selector); if (one) one.focus(); return Boolean(one); };

  const help = () => {
    const list = find("#help");
    list.open = !list.open;
    if (list.open) list.querySelector("summary").focus();
    return true;
  };

  const keys = {
    j: () => step(1),
    k: () => step(-1),
    u: () => press("#undo"),
    c: () => enter("#note"),
    "/": () => enter("#search"),
    "?": help,
  };
  for (const n of "12345") keys[n] = () => press(`.judge [aria-keyshortcuts="${n}"]`);

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (event.target.closest("input, textarea, select")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (!event.repeat && keys[event.key] && keys[event.key]()) event.preventDefault();
  });

  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") return;
    if (isSent) event.preventDefault(); // the same verdict twice would be a conflict with oneself
    isSent = true;
  });
  addEventListener("pageshow", () => { isSent = false; });
})();
