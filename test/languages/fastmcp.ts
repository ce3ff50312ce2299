import { FastMCP, requireScopes } from "fastmcp";
import { verifier } from "./verify.ts";

export function notes(issuer: string, resource: string) {
  const verify = verifier(issuer, resource, "at+jwt"), { origin, pathname } = new URL(resource);
  const metadata = `${origin}/.well-known/oauth-protected-resource${pathname}`;
  const lacks = `Bearer error="insufficient_scope", scope="mcp", resource_metadata="${metadata}"`;
  const server = new FastMCP({
    name: "notes", version: "1.0.0",
    oauth: { enabled: true, protectedResource: { resource, authorizationServers: [issuer], scopesSupported: ["mcp"] } },
    authenticate: async (request) => {
      const from = request.headers.origin; // web pages of other origins may not call
      if (from && from !== origin) throw new Response(null, { status: 403 });
      if (new URL(request.url ?? "", origin).pathname !== pathname) return null; // /sse asks once for the token
      const token = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? "")?.[1] ?? "";
      const c = await verify(token).catch(() => null);
      if (!c) return null; // 401
      const scopes = String(c.scope ?? "").split(" ");
      if (!scopes.includes("mcp")) throw new Response(null, { status: 403, headers: { "WWW-Authenticate": lacks } });
      return { issuer, subject: c.sub, client: c.client_id, scopes };
    },
  });
  server.addTool({ name: "whoami", execute: async (_, { session }) => JSON.stringify(session) });
  server.addTool({ name: "add_note", canAccess: requireScopes("notes:write"), execute: async () => "noted" });
  return server;
}
