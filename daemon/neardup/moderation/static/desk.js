// Keyboard shortcuts; links, buttons and forms do the same without this script.
"use strict";
(() => {
  let isSent = false;
  const find = (selector) => document.querySelector(selector);
  const click = (selector) => { const element = find(selector); if (element) element.click(); return Boolean(element); };
  const rows = find(".around") ? [] : [...document.querySelectorAll("a.row")]; // a case leads to the next case

  const step = (by) => {
    if (!rows.length) return click(by > 0 ? "a[rel=next]" : "a[rel=prev]");
    const at = rows.indexOf(document.activeElement);
    const to = rows[at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + by))];
    to.focus();
    to.scrollIntoView({ block: "nearest" });
    return true;
  };

  const focus = (selector) => { const element = find(selector); if (element) element.focus(); return Boolean(element); };

  // The similarity report: n and p go from passage to passage, and a click anywhere on one shows both sides.
  const jumps = [...document.querySelectorAll(".report .jump")];
  const jump = (by) => {
    if (!jumps.length) return false;
    const to = jumps[Math.max(0, Math.min(jumps.length - 1, jumps.indexOf(document.activeElement) + by))];
    to.focus({ preventScroll: true });
    to.scrollIntoView({ block: "center" });
    return true;
  };

  document.addEventListener("click", (event) => {
    const mark = event.target.closest(".report mark[data-passage]");
    if (mark && !event.target.closest("a") && getSelection().isCollapsed) click(`#p${mark.dataset.passage} .jump`);
  });

  const help = () => {
    const list = find("#help");
    list.open = !list.open;
    if (list.open) list.querySelector("summary").focus();
    return true;
  };

  const keys = {
    j: () => step(1),
    k: () => step(-1),
    u: () => click("#undo"),
    n: () => jump(1),
    p: () => jump(-1),
    c: () => focus("#note"),
    s: () => focus("#saved"),
    "/": () => focus("#search"),
    "?": help,
  };
  for (const n of "123456") keys[n] = () => click(`.judge [aria-keyshortcuts="${n}"]`);

  // A saved note that is chosen becomes part of the note, where it can be edited, once the list is left: arrows pass others by.
  document.addEventListener("focusout", (event) => {
    const saved = event.target.closest("#saved"), note = find("#note");
    if (!saved || !saved.value) return;
    note.value = note.value ? `${saved.value}\n${note.value}` : saved.value;
    saved.value = "";
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (event.target.closest("input, textarea, select")) {
      if (event.key === "Escape") event.target.blur();
      if (event.key === "Enter" && event.target.closest("#saved")) { focus("#note"); event.preventDefault(); }
      return;
    }
    if (!event.repeat && keys[event.key] && keys[event.key]()) event.preventDefault();
  });

  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") return;
    if (isSent) event.preventDefault(); // a second submission would conflict with the first
    isSent = true;
  });
  addEventListener("pageshow", () => { isSent = false; });
})();
