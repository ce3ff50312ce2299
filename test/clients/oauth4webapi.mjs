// A client on oauth4webapi, which throws at whatever deviates from the RFCs. Every answer
// of the server goes through its process* functions; those of RFC 7592, which it does
// not have, are checked here. What is done is told in one JSON argument; each step that
// succeeds is printed.
import assert from "node:assert/strict";
import * as oauth from "oauth4webapi";
import { Provider } from "./provider.mjs";

// issuer, resource; document: URL of the client's metadata; registration: what to
// register instead; machine: id and secret of a client of the operator, for no person;
// method; key: a private JWK with kid and alg.
const told = JSON.parse(process.argv[2]);
const http = { [oauth.allowInsecureRequests]: true }; // the issuer is on this machine
const done = (step) => console.log(`step: ${step}`);

async function discover() {
  const resource = new URL(told.resource);
  const about = await oauth.processResourceDiscoveryResponse(resource, await oauth.resourceDiscoveryRequest(resource, http));
  assert.deepEqual(about.authorization_servers, [told.issuer]);
  const issuer = new URL(told.issuer);
  const [as, oidc] = await Promise.all(["oauth2", "oidc"].map(async (algorithm) =>
    oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { algorithm, ...http }))));
  assert.deepEqual({ ...oidc, ...as }, oidc); // which has more, for OpenID Connect
  assert.ok(as.code_challenge_methods_supported.includes("S256"));
  assert.ok(as.authorization_response_iss_parameter_supported);
  for (const at of ["token", "revocation", "introspection"]) { // RFC 8414 section 2
    if (as[`${at}_endpoint_auth_methods_supported`].includes("private_key_jwt")) {
      assert.ok(as[`${at}_endpoint_auth_signing_alg_values_supported`].includes("RS256"), at);
    }
  }
  done("discovers");
  return as;
}

const algorithms = {
  ES256: { name: "ECDSA", namedCurve: "P-256" },
  EdDSA: { name: "Ed25519" },
  RS256: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
};

// authentication returns how the client authenticates, and refuses what the server does
// not list.
async function authentication(as, client) {
  assert.ok(as.token_endpoint_auth_methods_supported.includes(told.method));
  switch (told.method) {
    case "none": return oauth.None();
    case "client_secret_basic": return oauth.ClientSecretBasic(client.client_secret);
    case "client_secret_post": return oauth.ClientSecretPost(client.client_secret);
    case "private_key_jwt": {
      const { alg, kid, ...jwk } = told.key;
      assert.ok(as.token_endpoint_auth_signing_alg_values_supported.includes(alg));
      const key = await crypto.subtle.importKey("jwk", jwk, algorithms[alg], false, ["sign"]);
      return oauth.PrivateKeyJwt({ key, kid });
    }
  }
  throw new Error(`method ${told.method}`);
}

// identify returns the client: by its document, or registered.
async function identify(as, redirectUri) {
  if (told.document) {
    assert.equal(as.client_id_metadata_document_supported, true);
    return { client_id: told.document };
  }
  const asked = {
    client_name: "oauth4webapi", redirect_uris: [redirectUri], token_endpoint_auth_method: told.method,
    grant_types: ["authorization_code", "refresh_token"], response_types: ["code"], ...told.registration,
  };
  const client = await oauth.processDynamicClientRegistrationResponse(await oauth.dynamicClientRegistrationRequest(as, asked, http));
  for (const [name, value] of Object.entries(asked)) assert.deepEqual(client[name], value, name);
  assert.equal(typeof client.client_id_issued_at, "number");
  assert.equal("client_secret" in client, told.method.startsWith("client_secret_"));
  done("registers");
  return client;
}

// signIn has a person approve, and returns the tokens.
async function signIn(as, client, auth, provider, scope) {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const url = new URL(as.authorization_endpoint);
  url.search = new URLSearchParams({
    client_id: client.client_id, redirect_uri: provider.redirectUrl, response_type: "code", state, scope, resource: told.resource,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256",
  });
  provider.redirectToAuthorization(url);
  const answer = oauth.validateAuthResponse(as, client, await provider.answer(), state); // with iss
  const response = await oauth.authorizationCodeGrantRequest(as, client, auth, answer, provider.redirectUrl, verifier,
    { additionalParameters: { resource: told.resource }, ...http });
  const tokens = await oauth.processAuthorizationCodeResponse(as, client, response);
  await checkAccessToken(as, client, tokens);
  return tokens;
}

// checkAccessToken reads the token as a resource server does (RFC 9068 section 4).
async function checkAccessToken(as, client, tokens) {
  const request = new Request(told.resource, { headers: { authorization: `Bearer ${tokens.access_token}` } });
  const claims = await oauth.validateJwtAccessToken(as, request, told.resource, http);
  assert.equal(claims.client_id, client.client_id);
  assert.equal(claims.scope, tokens.scope);
  assert.ok(tokens.expires_in > 0);
  return claims;
}

// call calls a tool. A challenge throws.
async function call(token, name, args = {}) {
  const headers = new Headers({
    accept: "application/json, text/event-stream", "content-type": "application/json",
    "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name,
  });
  const response = await oauth.protectedResourceRequest(token, "POST", new URL(told.resource), headers, JSON.stringify({
    jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args, _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    } },
  }), http);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return text;
}

// challenged returns the parameters of the Bearer challenge that fn gets.
async function challenged(status, fn) {
  const e = await fn().then(() => assert.fail("no challenge"), (e) => e);
  if (!(e instanceof oauth.WWWAuthenticateChallengeError)) throw e;
  assert.equal(e.response.status, status);
  assert.deepEqual(e.cause.map((c) => c.scheme), ["bearer"]);
  return e.cause[0].parameters;
}

// refused expects a protocol error, with a challenge or without.
async function refused(error, promise) {
  const e = await promise.then(() => assert.fail(`not ${error}`), (e) => e);
  if (!e.response) throw e;
  assert.equal(e.error ?? (await e.response.json()).error, error);
}

async function refresh(as, client, auth, token) {
  const response = await oauth.refreshTokenGrantRequest(as, client, auth, token, { additionalParameters: { resource: told.resource }, ...http });
  return oauth.processRefreshTokenResponse(as, client, response);
}

async function introspect(as, client, auth, token) {
  return oauth.processIntrospectionResponse(as, client, await oauth.introspectionRequest(as, client, auth, token, http));
}

async function revoke(as, client, auth, token) {
  await oauth.processRevocationResponse(await oauth.revocationRequest(as, client, auth, token, http));
}

// manage reads, replaces and deletes the registration (RFC 7592).
async function manage(as, client, auth) {
  const request = async (method, body) => {
    const response = await fetch(client.registration_client_uri, {
      method, body: body && JSON.stringify(body),
      headers: { authorization: `Bearer ${client.registration_access_token}`, ...(body && { "content-type": "application/json" }) },
    });
    assert.equal(response.headers.get("cache-control"), "no-store");
    return { status: response.status, body: response.status === 204 ? null : await response.json() };
  };
  const read = await request("GET");
  assert.equal(read.status, 200);
  for (const name of ["client_id", "client_name", "redirect_uris", "token_endpoint_auth_method", "grant_types", "jwks"]) assert.deepEqual(read.body[name], client[name], name);
  done("reads its registration");

  // A replacement names everything but what the server gave (section 2.2).
  const { registration_access_token, registration_client_uri, client_secret_expires_at, client_id_issued_at, ...given } = read.body;
  const redirects = [...given.redirect_uris, "https://app.example.com/callback"];
  const replaced = await request("PUT", { ...given, client_name: "Renamed", redirect_uris: redirects });
  assert.equal(replaced.status, 200);
  assert.equal(replaced.body.client_name, "Renamed");
  assert.deepEqual((await request("GET")).body.redirect_uris, redirects);
  done("replaces its registration");

  assert.equal((await request("DELETE")).status, 204);
  assert.equal((await request("GET")).status, 401);
  await refused("invalid_client", refresh(as, client, auth, "gone"));
  done("deletes its registration");
}

// forPeople is the life of a client that people sign in with.
async function forPeople(as, provider) {
  const client = await identify(as, provider.redirectUrl);
  const auth = await authentication(as, client);
  const challenge = await challenged(401, () => call("bogus", "whoami"));
  assert.ok(challenge.resource_metadata);
  let tokens = await signIn(as, client, auth, provider, "mcp");
  done("signs in");
  assert.match(await call(tokens.access_token, "whoami"), /usr_/);
  done("calls a tool");

  const more = await challenged(403, () => call(tokens.access_token, "add_note", { text: "x" }));
  assert.equal(more.error, "insufficient_scope");
  tokens = await signIn(as, client, auth, provider, more.scope);
  assert.match(await call(tokens.access_token, "add_note", { text: "from a test" }), /from a test/);
  done("steps up");

  const before = tokens;
  tokens = await refresh(as, client, auth, tokens.refresh_token);
  assert.notEqual(tokens.refresh_token, before.refresh_token);
  assert.notEqual(tokens.access_token, before.access_token);
  await checkAccessToken(as, client, tokens);
  await call(tokens.access_token, "whoami");
  done("refreshes");

  const confidential = told.method !== "none";
  if (confidential) {
    const seen = await introspect(as, client, auth, tokens.access_token);
    assert.deepEqual([seen.active, seen.client_id, seen.iss], [true, client.client_id, as.issuer]);
    assert.equal((await introspect(as, client, auth, "bogus")).active, false);
    done("introspects");
  }

  await revoke(as, client, auth, "bogus"); // RFC 7009 section 2.2: a success
  await revoke(as, client, auth, tokens.refresh_token);
  await refused("invalid_grant", refresh(as, client, auth, tokens.refresh_token));
  assert.equal((await challenged(401, () => call(tokens.access_token, "whoami"))).error, "invalid_token");
  if (confidential) assert.equal((await introspect(as, client, auth, tokens.access_token)).active, false);
  done("revokes");

  if (!told.document) await manage(as, client, auth);
}

// forItself is the life of a client without people.
async function forItself(as) {
  const client = { client_id: told.machine.id, client_secret: told.machine.secret };
  const auth = await authentication(as, client);
  const response = await oauth.clientCredentialsGrantRequest(as, client, auth, { resource: told.resource, scope: "mcp" }, http);
  const tokens = await oauth.processClientCredentialsResponse(as, client, response);
  assert.equal(tokens.refresh_token, undefined);
  const claims = await checkAccessToken(as, client, tokens);
  assert.equal(claims.sub, client.client_id);
  await call(tokens.access_token, "whoami");
  done("calls a tool");
  assert.equal((await introspect(as, client, auth, tokens.access_token)).active, true);
  done("introspects");
  await revoke(as, client, auth, tokens.access_token);
  assert.equal((await introspect(as, client, auth, tokens.access_token)).active, false);
  await challenged(401, () => call(tokens.access_token, "whoami"));
  done("revokes");
}

const as = await discover();
if (told.machine) {
  await forItself(as);
} else {
  const provider = new Provider();
  await provider.listen();
  try {
    await forPeople(as, provider);
  } finally {
    provider.close();
  }
}
