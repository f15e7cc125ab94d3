// Scrolls both sides of a passage into view and highlights them, also of the one that the page was opened at; without
// this script, links jump to the other side.
"use strict";
(() => {
  const HIGHLIGHT_MS = 1500;
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  const numbers = [...document.querySelectorAll(".story mark[id^=a]")].map((mark) => mark.dataset.passage);
  const folds = [...document.querySelectorAll(".story details.fold, .text details.fold")];
  let at = -1;

  const highlight = (mark) => {
    for (const part of mark.closest(".story").querySelectorAll(`mark[data-passage="${mark.dataset.passage}"]`)) {
      part.classList.add("flash");
      setTimeout(() => part.classList.remove("flash"), HIGHLIGHT_MS);
    }
  };

  // Scroll the frames directly, because a second smooth scrollIntoView() cancels the first.
  const scrollFrameTo = (mark, isTarget) => {
    const frame = mark.closest(".story");
    if (frame.scrollHeight <= frame.clientHeight) {
      if (isTarget) mark.scrollIntoView({ block: "center", behavior });
      return;
    }
    if (isTarget) frame.scrollIntoView({ block: "nearest" });
    const distance = mark.getClientRects()[0].top - frame.getBoundingClientRect().top - frame.clientHeight / 3;
    frame.scrollBy({ top: distance, behavior });
  };

  const show = (number, target) => {
    at = numbers.indexOf(number);
    for (const side of ["a", "b"]) {
      const mark = document.getElementById(side + number);
      scrollFrameTo(mark, side === target);
      highlight(mark);
    }
  };

  const step = (by) => {
    if (!numbers.length) return;
    show(numbers[Math.max(0, Math.min(numbers.length - 1, at + by))], "a");
    document.querySelector(`#a${numbers[at]} .jump`).focus({ preventScroll: true });
  };

  const fold = () => {
    const open = folds.some((details) => !details.open);
    folds.forEach((details) => { details.open = open; });
  };

  document.addEventListener("click", (event) => {
    const mark = event.target.closest(".story mark[data-passage]");
    if (!mark || !getSelection().isCollapsed) return;
    event.preventDefault();
    show(mark.dataset.passage, mark.closest("[data-side]").dataset.side === "a" ? "b" : "a");
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, textarea, select")) return;
    const action = { n: () => step(1), p: () => step(-1), f: fold }[event.key];
    if (action) { event.preventDefault(); action(); }
  });

  const here = document.querySelector("mark:has(> #here)");
  if (here && location.hash === "#here") show(here.dataset.passage, "b");

  for (const keys of document.querySelectorAll(".keys")) keys.hidden = false;
  for (const button of document.querySelectorAll("button[data-does=fold]")) {
    button.hidden = !folds.length;
    button.addEventListener("click", fold);
  }
})();
