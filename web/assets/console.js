"use strict";
// A page that can be followed is asked for again every five seconds, for half an hour at most, while it
// is in front of the person. Only its lists change: what somebody fills in stays.
const every = 5000, rounds = 360;
const parts = (page) => page.querySelectorAll("[data-live]");
let timer = 0, left = 0;

async function again(button) {
  if (left-- <= 0) return stop(button);
  timer = setTimeout(again, every, button);
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin", redirect: "error", cache: "no-store" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const now = parts(page);
    if (!answer.ok || !now.length) return location.reload(); // it says why, or asks who it is
    parts(document).forEach((part, i) => {
      if (now[i] && !part.contains(document.activeElement) && part.innerHTML !== now[i].innerHTML) {
        part.innerHTML = now[i].innerHTML;
      }
    });
  } catch {
    stop(button);
  }
}

function stop(button) {
  clearTimeout(timer);
  timer = 0;
  button.setAttribute("aria-pressed", "false");
}

addEventListener("DOMContentLoaded", () => {
  const reload = document.querySelector("[data-follow]");
  if (!reload) return;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Follow live";
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () => {
    if (timer) return stop(button);
    left = rounds;
    button.setAttribute("aria-pressed", "true");
    again(button);
  });
  reload.replaceWith(button);
});
