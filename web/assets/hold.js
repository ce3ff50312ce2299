"use strict";
// Approve is held back until the page has been in front of the person for a moment in which
// nothing was pressed, so that the second click of a double click, or the next of many, that
// began on a window in front of this one approves nothing. Keys need no such care: nothing
// here has the focus before the person gives it. A browser that a program drives (WebDriver §4)
// has nobody in front of it who could be tricked, and the program would lose its click.
const pause = navigator.webdriver ? 0 : 600;
let held = pause > 0;
let timer;
let focused = -Infinity;

function able(value) {
  for (const button of document.querySelectorAll('button[value="approve"]')) button.disabled = !value;
}

function free() {
  clearTimeout(timer);
  held = false;
  able(true);
}

function hold() {
  if (!pause) return free();
  clearTimeout(timer);
  held = true;
  if (!document.hidden) timer = setTimeout(free, pause);
}

addEventListener("DOMContentLoaded", () => { able(!pause); hold(); });
addEventListener("pageshow", hold);
document.addEventListener("visibilitychange", hold);
// A press on this very page brings the focus, too; it was made before the focus came.
addEventListener("focus", (event) => {
  if (held) return;
  focused = event.timeStamp;
  hold();
});
document.addEventListener("pointerdown", (event) => {
  if (!held) return;
  if (event.timeStamp <= focused) free();
  else hold();
}, true);
document.addEventListener("click", (event) => {
  if (held && event.detail > 0 && event.target.closest('button[value="approve"]')) event.preventDefault();
}, true);
