"use strict";
// Without script the page loads itself again every few seconds. With script it asks first whether there
// is anything new, so that people who listen to the page are not thrown back to its beginning.
const page = document.querySelector("[data-state]");
const end = Date.now() + Number(page.dataset.seconds) * 1000;

async function ask() {
  let news = Date.now() > end;
  try {
    news ||= (await fetch(page.dataset.state, { redirect: "error" })).status !== 204;
  } catch { /* the network may come back */ }
  if (news) location.replace(page.dataset.self);
  else setTimeout(ask, 3000);
}
setTimeout(ask, 3000);
