// What anchors do without it, smoother: both sides of a passage are brought into view and lit up.
"use strict";
(() => {
  const LIT_FOR = 1500;
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  const numbers = [...document.querySelectorAll(".story mark[id^=a]")].map((mark) => mark.dataset.passage);
  const folds = [...document.querySelectorAll(".story details.fold")];
  let at = -1;

  const light = (mark) => {
    for (const piece of mark.closest(".story").querySelectorAll(`mark[data-passage="${mark.dataset.passage}"]`)) {
      piece.classList.add("flash");
      setTimeout(() => piece.classList.remove("flash"), LIT_FOR);
    }
  };

  // Frames are scrolled themselves: of two smooth scrollIntoView() at once, the second ends the first.
  const bring = (mark, wanted) => {
    const frame = mark.closest(".story");
    if (frame.scrollHeight <= frame.clientHeight) {
      if (wanted) mark.scrollIntoView({ block: "center", behavior });
      return;
    }
    if (wanted) frame.scrollIntoView({ block: "nearest" });
    const away = mark.getClientRects()[0].top - frame.getBoundingClientRect().top - frame.clientHeight / 3;
    frame.scrollBy({ top: away, behavior });
  };

  const show = (number, wanted) => {
    at = numbers.indexOf(number);
    for (const side of ["a", "b"]) {
      const mark = document.getElementById(side + number);
      bring(mark, side === wanted);
      light(mark);
    }
  };

  const step = (by) => {
    if (!numbers.length) return;
    show(numbers[Math.max(0, Math.min(numbers.length - 1, at + by))], "a");
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
    show(mark.dataset.passage, mark.closest("[data-side]").dataset.side === "a" ? "b" : "a");
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
