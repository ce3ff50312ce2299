// An MCP server with the TypeScript SDK: at /mcp it judges access tokens itself, at /inner it stands behind
// the gateway, and believes what that signs.
import express from "express";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { protect } from "./protect.ts";
import { verifier } from "./verify.ts";

const [, , address, issuer] = process.argv;
const resource = `http://${address}/mcp`;

function tools() {
  const server = new McpServer({ name: "notes", version: "1" });
  const who = (auth: any) => {
    const said = { subject: auth?.extra?.subject, client: auth?.clientId, scopes: auth?.scopes, issuer };
    return { content: [{ type: "text" as const, text: JSON.stringify(said) }], structuredContent: said };
  };
  server.registerTool("whoami", {}, ({ authInfo }: any) => who(authInfo));
  server.registerTool("add_note", {}, ({ authInfo }: any) => who(authInfo));
  return server;
}

async function serve(req: any, res: any) {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  res.on("close", () => transport.close());
  await tools().connect(transport);
  await transport.handleRequest(req, res);
}

const app = express();
await protect(app, issuer, resource);
app.post("/mcp", serve);

const identity = verifier(issuer, `http://${address}/inner`, "mcp-identity+jwt");
app.post("/inner", async (req: any, res) => {
  try {
    const claims = await identity(req.get("X-MCP-Identity") ?? "");
    const scopes = String(claims.scope ?? "").split(" ");
    req.auth = { token: "", clientId: claims.client_id, scopes, extra: { subject: claims.sub } };
  } catch {
    res.sendStatus(401);
    return;
  }
  await serve(req, res);
});

const [host, port] = address.split(":");
app.listen(Number(port), host);
