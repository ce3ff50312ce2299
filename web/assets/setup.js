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
}
takeToken();
addEventListener("hashchange", takeToken);
