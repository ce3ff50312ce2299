// The TypeScript SDK v2: sign in, call tools, and step up when one needs more scope. With DPOP its
// tokens are bound to a key, and the MCP server must have demanded nonces of it.
import { Client, DpopSession, StreamableHTTPClientTransport, UnauthorizedError }
  from "@modelcontextprotocol/client";
import { run } from "./provider.mjs";

const session = process.env.DPOP ? await DpopSession.create() : undefined;
await run(async (authProvider, url, fn) => {
  if (session) authProvider.dpop = () => session;
  const client = new Client({ name: "sdk-v2", version: "1" });
  const transport = new StreamableHTTPClientTransport(url, { authProvider });
  try {
    await client.connect(transport);
    const result = await fn(client);
    if (session && !session.nonceFor(url)) throw new Error("no nonce was demanded");
    return result;
  } catch (e) {
    if (!(e instanceof UnauthorizedError)) throw e;
    await transport.finishAuth(await authProvider.answer()); // with iss, which v2 checks
  } finally {
    await client.close();
  }
});
