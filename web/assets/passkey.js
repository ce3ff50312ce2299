"use strict";
// A passkey fills in the form that it belongs to, which is then posted like any other. The words
// for people stand in the form, in their language.
const forms = document.querySelectorAll("form[data-passkey]");
const quiet = () => {}; // it was a courtesy
let listed; // ends the request that the browser's own list of passkeys answers

function say(form, name) {
  const problem = form.querySelector("[role=alert]");
  problem.textContent = form.dataset[name];
  problem.hidden = false;
}

// Neither the scheme nor the address tells: a browser may be told to trust an origin.
function able() {
  return window.isSecureContext && window.PublicKeyCredential && PublicKeyCredential.parseRequestOptionsFromJSON;
}

function reason(error) {
  switch (error.name) {
    case "NotAllowedError": return "cancelled"; // or too late: browsers do not tell which
    case "InvalidStateError": return "already";
    case "SecurityError": return "address";
  }
  return "failed";
}

function options(form) {
  const given = JSON.parse(form.dataset.options);
  return given.publicKey ?? given;
}

function ask(form, more) {
  if (form.dataset.passkey === "create") {
    return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options(form)), ...more });
  }
  return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options(form)), ...more });
}

function post(form, credential) {
  form.elements.credential.value = JSON.stringify(credential.toJSON());
  form.submit();
}

async function press(event) {
  const form = event.target;
  if (form.elements.credential.value) return;
  event.preventDefault();
  if (!able()) return say(form, "unable");
  listed?.abort();
  try {
    post(form, await ask(form));
  } catch (error) {
    say(form, reason(error));
    list(form);
  }
}

// list has the browser offer passkeys where the name is typed.
async function list(form) {
  if (form.dataset.passkey !== "list" || !await PublicKeyCredential.isConditionalMediationAvailable?.()) return;
  listed = new AbortController();
  try {
    post(form, await ask(form, { mediation: "conditional", signal: listed.signal }));
  } catch { /* the button says what is wrong */ }
}

// signal tells authenticators which passkeys are gone, so that they do not offer them again.
function signal(form) {
  const { unknown, accepted } = form.dataset;
  if (unknown) PublicKeyCredential.signalUnknownCredential?.({ rpId: options(form).rpId, credentialId: unknown })?.catch(quiet);
  if (accepted) PublicKeyCredential.signalAllAcceptedCredentials?.(JSON.parse(accepted))?.catch(quiet);
}

for (const form of forms) {
  form.addEventListener("submit", press);
  if (!able()) {
    say(form, "unable");
    continue;
  }
  signal(form);
  list(form);
}
if (able()) for (const known of document.querySelectorAll("[data-accepted]:not(form)")) signal(known);
