// A TypeScript SDK as a host whose model calls only what is listed: it signs in, lists the tools, and calls
// add_note if it is there. V names the version of the SDK.
import { run } from "./provider.mjs";

const name = process.env.V === "1" ? "@modelcontextprotocol/sdk" : "@modelcontextprotocol/client";
const sdk = process.env.V === "1"
  ? {
    ...await import(`${name}/client/index.js`), ...await import(`${name}/client/streamableHttp.js`),
    ...await import(`${name}/client/auth.js`),
  }
  : await import(name);

await run(async (authProvider, url, fn) => {
  const client = new sdk.Client({ name: "scopes", version: "1" });
  const transport = new sdk.StreamableHTTPClientTransport(url, { authProvider });
  try {
    await client.connect(transport);
    const { tools } = await client.listTools();
    console.log(`listed ${tools.map((t) => t.name).sort().join(" ")}`);
    return await fn(client);
  } catch (e) {
    if (!(e instanceof sdk.UnauthorizedError)) throw e;
    const back = await authProvider.answer();
    await transport.finishAuth(process.env.V === "1" ? back.get("code") : back);
  } finally {
    await client.close();
  }
});
