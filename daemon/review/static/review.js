// What anchors do without it, smoother: both sides of a passage are brought into view and lit up.
"use strict";
(() => {
  const LIT_FOR = 1500;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const numbers = [...document.querySelectorAll(".story mark[id^=a]")].map((mark) => mark.dataset.passage);
  const folds = [...document.querySelectorAll(".story details.fold")];
  let at = -1;

  const bring = (id) => {
    const mark = document.getElementById(id);
    mark.scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
    for (const piece of mark.closest(".story").querySelectorAll(`mark[data-passage="${mark.dataset.passage}"]`)) {
      piece.classList.add("flash");
      setTimeout(() => piece.classList.remove("flash"), LIT_FOR);
    }
  };

  const show = (number, sides) => {
    at = numbers.indexOf(number);
    sides.forEach((side) => bring(side + number));
  };

  const step = (by) => {
    if (!numbers.length) return;
    show(numbers[Math.max(0, Math.min(numbers.length - 1, at + by))], ["a", "b"]);
    document.querySelector(`#a${numbers[at]} .jump`).focus({ preventScroll: true });
  };

  const fold = () => {
    const open = folds.some((one) => !one.open);
    folds.forEach((one) => { one.open = open; });
  };

  document.addEventListener("click", (event) => {
    const mark = event.target.closest(".story mark[data-passage]");
    if (!mark || !getSelection().isCollapsed) return;
    event.preventDefault();
    show(mark.dataset.passage, mark.closest("[data-side]").dataset.side === "a" ? ["b", "a"] : ["a", "b"]);
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, textarea, select")) return;
    const does = { n: () => step(1), p: () => step(-1), f: fold }[event.key];
    if (does) { event.preventDefault(); does(); }
  });

  for (const keys of document.querySelectorAll(".keys")) keys.hidden = false;
  for (const button of document.querySelectorAll("button[data-does=fold]")) {
    button.hidden = !folds.length;
    button.addEventListener("click", fold);
  }
})();
