// A TypeScript SDK, v1 or v2: sign in, let the access token expire, then call a tool
// several times at once. Every call finds its token expired and refreshes by itself.
import { Provider } from "./provider.mjs";

const [, , version, url, wait, count] = process.argv;
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = version === "v1"
  ? {
      ...(await import("@modelcontextprotocol/sdk/client/index.js")),
      ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
      ...(await import("@modelcontextprotocol/sdk/client/auth.js")),
    }
  : await import("@modelcontextprotocol/client");

const authProvider = new Provider();
await authProvider.listen();

const connect = async () => {
  const client = new Client({ name: `parallel-${version}`, version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
  try {
    await client.connect(transport);
    return client;
  } catch (e) {
    if (!(e instanceof UnauthorizedError)) throw e;
    const back = await authProvider.answer();
    await transport.finishAuth(version === "v1" ? back.get("code") : back);
    return null;
  }
};

const client = (await connect()) ?? (await connect());
for (let round = 0; round < 2; round++) {
  await new Promise((ok) => setTimeout(ok, Number(wait)));
  const calls = Array.from({ length: Number(count) }, () => client.callTool({ name: "whoami", arguments: {} }));
  for (const r of await Promise.allSettled(calls)) {
    console.log(r.status === "fulfilled" ? `answered ${JSON.stringify(r.value)}` : `failed ${r.reason?.stack ?? r.reason}`);
  }
}
await client.close();
authProvider.close();
