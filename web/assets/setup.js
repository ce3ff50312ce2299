"use strict";
// The setup link carries its token behind "#", so that it reaches no log on the way.
// Take it into the form, and out of the address and the history.
function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  const field = document.getElementById("token");
  if (token) {
    field.value = token;
    history.replaceState(null, "", location.pathname + location.search);
  }
  document.getElementById("token-row").hidden = field.value !== "";
  if (token) check(field);
}

// check says before a password is thought of what the form would say after it. Any other
// answer than 410 (Gone) is left to the form.
async function check(field) {
  const token = field.value;
  let gone = false;
  try {
    const body = new URLSearchParams({ step: field.form.elements.step.value, token });
    gone = (await fetch(field.form.getAttribute("action") + "/check", { method: "POST", body })).status === 410;
  } catch { /* the form will tell */ }
  if (field.value !== token) return; // another link was opened meanwhile
  document.getElementById("gone").hidden = !gone;
  field.form.hidden = gone;
  document.querySelector(".lead").hidden = gone;
}
takeToken();
addEventListener("hashchange", takeToken);
