// The TypeScript SDK v1: sign in, then call a tool.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Provider } from "./provider.mjs";

const [, , url, tool] = process.argv;
const authProvider = new Provider();
await authProvider.listen();

const connect = async () => {
  const client = new Client({ name: "sdk-v1", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
  try {
    await client.connect(transport);
    return client;
  } catch (e) {
    if (!(e instanceof UnauthorizedError)) throw e;
    const back = await authProvider.answer();
    await transport.finishAuth(back.get("code"));
    return null;
  }
};

const client = (await connect()) ?? (await connect());
console.log(JSON.stringify(await client.callTool({ name: tool, arguments: {} })));
await client.close();
authProvider.close();
