// node-oidc-provider for the tests: users with passwords, one client that has to use
// PKCE, refresh tokens that are used once (a second use revokes the whole grant),
// revocation, introspection, and sessions whose end is told over the back channel.
//
// What it should be comes as JSON on standard input, and it ends when standard input
// does. One line on standard output says where it listens, and where a test can do what
// an administrator would:
//   POST /revoke?user=ID    takes all that the person ever granted away
//   POST /disable?user=ID   closes the account; /enable opens it again
import { createInterface } from "node:readline";
import http from "node:http";

import Provider from "oidc-provider";

const lines = createInterface({ input: process.stdin });
const config = JSON.parse((await lines[Symbol.asyncIterator]().next()).value);
process.stdin.on("close", () => process.exit(0)).resume();

const users = new Map(config.users.map((user) => [user.id, user]));
const grants = new Map(); // of each person, by id
const free = new Set(["openid", "profile", "email", "groups", "offline_access"]); // what nobody is asked about

const provider = new Provider(config.issuer, {
  clients: [{
    client_id: config.client_id,
    client_secret: config.client_secret,
    redirect_uris: config.redirect_uris,
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "client_secret_basic",
    ...(config.backchannel_logout && {
      backchannel_logout_uri: config.backchannel_logout,
      backchannel_logout_session_required: true,
    }),
  }],
  scopes: ["openid", ...(config.offline ? ["offline_access"] : []), ...(config.scopes ?? [])],
  claims: {
    openid: ["sub"],
    email: ["email", "email_verified"],
    profile: ["name", "preferred_username"],
    groups: ["groups"],
  },
  features: {
    devInteractions: { enabled: false },
    revocation: { enabled: true },
    introspection: { enabled: config.introspection ?? true },
    backchannelLogout: { enabled: true },
    rpInitiatedLogout: { enabled: true, logoutSource },
  },
  pkce: { required: () => true },
  rotateRefreshToken: () => true,
  issueRefreshToken: async (ctx, client, code) => client.grantTypeAllowed("refresh_token") && (!config.offline || code.scopes.has("offline_access")),
  expiresWithSession: async () => true,
  cookies: { keys: ["only for tests"] },
  ttl: {
    AccessToken: config.token_ttl, IdToken: config.token_ttl, AuthorizationCode: 60,
    RefreshToken: 86400, Grant: 86400, Session: 86400, Interaction: 600,
  },
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (ctx, id) => {
    const user = users.get(id);
    if (!user || user.disabled) return undefined;
    return {
      accountId: id,
      claims: () => ({
        sub: id, name: user.name, preferred_username: user.name, email: user.email, email_verified: true, groups: user.groups ?? [],
      }),
    };
  },
  loadExistingGrant,
  // It refuses to speak to this machine otherwise, which is where the tests run.
  fetch: (url, { dispatcher, ...options }) => fetch(url, options),
});

provider.use(async (ctx, next) => {
  const m = /^\/interaction\/([^/]+)$/.exec(ctx.path);
  return m ? interact(ctx) : next();
});
for (const failure of ["server_error", "backchannel.error"]) {
  provider.on(failure, (ctx, err) => console.error(failure, err));
}
provider.on("backchannel.success", (ctx, client, account, sid) => console.error("backchannel.success", account, sid));
provider.on("grant.revoked", (ctx, grant) => console.error("grant.revoked", grant));

// loadExistingGrant gives the client what nobody is asked about, as an administrator's
// approval for a whole company does. For anything else there is a page.
async function loadExistingGrant(ctx) {
  const { client, session, result } = ctx.oidc;
  const id = result?.consent?.grantId ?? session.grantIdFor(client.clientId);
  const known = id && await provider.Grant.find(id);
  if (known) return known;
  const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
  grant.addOIDCScope([...free].join(" "));
  await remember(session.accountId, grant);
  return grant;
}

async function remember(user, grant) {
  const id = await grant.save();
  if (!grants.has(user)) grants.set(user, new Set());
  grants.get(user).add(id);
  return id;
}

// interact shows the form for signing in, or the one for what has to be consented to.
async function interact(ctx) {
  const details = await provider.interactionDetails(ctx.req, ctx.res);
  const { prompt, params, session } = details;
  const form = ctx.method === "POST" ? new URLSearchParams(await body(ctx.req)) : undefined;
  if (form?.get("decision") === "deny") {
    return finish(ctx, { error: "access_denied", error_description: "the person said no" });
  }
  if (prompt.name === "login") {
    const user = form && [...users.values()].find((u) => u.email === form.get("login") && u.password === form.get("password"));
    if (user && !user.disabled) return finish(ctx, { login: { accountId: user.id } });
    return page(ctx, "Sign in", `${form ? "<p role=alert>Wrong name or password.</p>" : ""}
      <label>E-mail <input name=login value="${escape(params.login_hint ?? "")}"></label>
      <label>Password <input name=password type=password></label>
      <button name=decision value=go>Sign in</button> <button name=decision value=deny>Cancel</button>`);
  }
  const missing = prompt.details.missingOIDCScope ?? [];
  if (!form) {
    return page(ctx, "Allow", `<p>${escape(params.client_id)} asks for: <b>${escape(missing.join(" "))}</b></p>
      <button name=decision value=allow>Allow</button> <button name=decision value=deny>Cancel</button>`);
  }
  const grant = details.grantId ? await provider.Grant.find(details.grantId)
    : new provider.Grant({ clientId: params.client_id, accountId: session.accountId });
  grant.addOIDCScope(missing.join(" "));
  return finish(ctx, { consent: { grantId: await remember(session.accountId, grant) } });
}

function finish(ctx, result) {
  ctx.respond = false;
  return provider.interactionFinished(ctx.req, ctx.res, result, { mergeWithLastSubmission: true });
}

function page(ctx, title, fields) {
  ctx.type = "html";
  ctx.body = `<!doctype html><html lang=en><title>${title} at node-oidc-provider</title><main><h1>${title}</h1><form method=post>${fields}</form></main>`;
}

async function logoutSource(ctx, form) {
  ctx.type = "html";
  ctx.body = `<!doctype html><html lang=en><title>Sign out</title><main>${form}<button form="op.logoutForm" name=logout value=yes>Sign out</button></main>`;
}

async function body(req) {
  let text = "";
  for await (const chunk of req) text += chunk;
  return text;
}

function escape(text) {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

// administer is for the test alone.
async function administer(req, res) {
  const url = new URL(req.url, "http://admin");
  const id = url.searchParams.get("user");
  const user = users.get(id);
  const act = { "/revoke": () => revoke(id), "/disable": () => { user.disabled = true; }, "/enable": () => { user.disabled = false; } }[url.pathname];
  if (req.method !== "POST" || !act || !user) return res.writeHead(404).end("no such thing");
  await act();
  return res.writeHead(200).end();
}

async function revoke(user) {
  for (const grant of grants.get(user) ?? []) {
    for (const kind of ["AccessToken", "RefreshToken", "AuthorizationCode"]) await provider[kind].revokeByGrantId(grant);
    await provider.Grant.adapter.destroy(grant);
  }
  grants.delete(user);
}

async function listen(handler) {
  const server = http.createServer(handler);
  await new Promise((ok) => server.listen(0, "127.0.0.1", ok));
  return `127.0.0.1:${server.address().port}`;
}

const address = await listen(provider.callback());
const admin = await listen((req, res) => administer(req, res).catch((err) => res.writeHead(500).end(String(err))));
console.log(JSON.stringify({ address, admin }));
