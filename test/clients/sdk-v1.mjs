// The TypeScript SDK v1: sign in, then call tools.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { run } from "./provider.mjs";

await run(async (authProvider, url, fn) => {
  const client = new Client({ name: "sdk-v1", version: "1" });
  const transport = new StreamableHTTPClientTransport(url, { authProvider });
  try {
    await client.connect(transport);
    return await fn(client);
  } catch (e) {
    if (!(e instanceof UnauthorizedError)) throw e;
    const back = await authProvider.answer();
    await transport.finishAuth(back.get("code"));
  } finally {
    await client.close();
  }
});
