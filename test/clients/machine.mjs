// The TypeScript SDK v2 as a machine: client credentials with a private key (SEP-1046).
import { Client, PrivateKeyJwtProvider, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const told = JSON.parse(process.argv[2]);
const authProvider = new PrivateKeyJwtProvider({
  clientId: told.clientId,
  privateKey: told.key,
  algorithm: "ES256",
  expectedIssuer: told.issuer,
  scope: "mcp",
});
const client = new Client({ name: "machine", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(told.url), { authProvider }));
console.log(JSON.stringify(await client.callTool({ name: "whoami", arguments: {} })));
await client.close();
