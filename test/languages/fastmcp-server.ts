// MCP servers with FastMCP, each at an address of its own: one judges access tokens by the recipe, one does so in
// sessions, one by FastMCP's own verifier, which is told of no audience, and one stands behind the gateway and
// believes what that signs.
import { FastMCP } from "fastmcp";
import { JWKSVerifier } from "fastmcp/auth";
import { notes } from "./fastmcp.ts";
import { verifier } from "./verify.ts";

const [, , issuer, alone, sessions, plain, inner] = process.argv;

function listen(server: FastMCP<any>, url: string, stateless: boolean) {
  const { hostname, port, pathname } = new URL(url);
  const httpStream = { host: hostname, port: Number(port), endpoint: pathname as `/${string}`, stateless };
  return server.start({ transportType: "httpStream", httpStream });
}

function believing(authenticate: (request: any) => Promise<any>) {
  const server = new FastMCP({ name: "notes", version: "1.0.0", authenticate });
  server.addTool({ name: "whoami", execute: async (_, { session }) => JSON.stringify(session) });
  server.addTool({ name: "add_note", execute: async (_, { session }) => JSON.stringify(session) });
  return server;
}

await listen(notes(issuer, alone), alone, true);
await listen(notes(issuer, sessions), sessions, false);

const keys = { jwksUri: `${issuer}/jwks.json`, issuer };
const own = new JWKSVerifier(keys), exact = new JWKSVerifier({ ...keys, audience: alone });
await listen(believing(async (request) => {
  const token = (request.headers.authorization ?? "").slice("Bearer ".length);
  return (await own.verify(token)).valid && { withAudience: (await exact.verify(token)).valid };
}), plain, true);

const identity = verifier(issuer, inner, "mcp-identity+jwt");
await listen(believing(async (request) => {
  const c = await identity(request.headers["x-mcp-identity"] ?? "").catch(() => null);
  return c && { issuer, subject: c.sub, client: c.client_id, scopes: String(c.scope ?? "").split(" ") };
}), inner, true);
