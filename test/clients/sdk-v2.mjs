// The TypeScript SDK v2: sign in, call tools, and step up when one needs more scope.
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { run } from "./provider.mjs";

await run(async (authProvider, url, fn) => {
  const client = new Client({ name: "sdk-v2", version: "1" });
  const transport = new StreamableHTTPClientTransport(url, { authProvider });
  try {
    await client.connect(transport);
    return await fn(client);
  } catch (e) {
    if (!(e instanceof UnauthorizedError)) throw e;
    await transport.finishAuth(await authProvider.answer()); // with iss, which v2 checks
  } finally {
    await client.close();
  }
});
