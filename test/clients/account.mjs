// A TypeScript SDK, v1 or v2: sign in, begin a call that streams for two minutes, and say how that
// ended. Then, with the tokens that are left, connect again and call a tool.
import { Provider } from "./provider.mjs";

const [, , version, url] = process.argv;
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = version === "v1"
  ? {
      ...(await import("@modelcontextprotocol/sdk/client/index.js")),
      ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
      ...(await import("@modelcontextprotocol/sdk/client/auth.js")),
    }
  : await import("@modelcontextprotocol/client");

const connect = async (authProvider) => {
  for (let i = 0; i < 4; i++) {
    const client = new Client({ name: `account-${version}`, version: "1" });
    const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
    try {
      await client.connect(transport);
      return client;
    } catch (e) {
      if (!(e instanceof UnauthorizedError)) throw e;
      const back = await authProvider.answer();
      await transport.finishAuth(version === "v1" ? back.get("code") : back);
    }
  }
  throw new Error("asked to sign in again and again");
};

class Account extends Provider {
  // The SDKs give up at a refresh token that is refused unless their host forgets it.
  invalidateCredentials(scope) {
    console.log(`forgets ${scope}`);
    this.saveTokens(undefined);
  }
}

const first = new Account();
await first.listen();
let client = await connect(first);
client.onerror = () => {}; // the call says it, too
const count = { name: "slow_count", arguments: { to: 60, milliseconds: 2000 } };
const options = { onprogress: (p) => console.log(`progress ${p.progress}`), timeout: 20000, resetTimeoutOnProgress: true };
try {
  const result = await (version === "v1" ? client.callTool(count, undefined, options) : client.callTool(count, options));
  console.log(`finished ${JSON.stringify(result)}`);
} catch (e) {
  console.log(`ended ${e}`);
}
await client.close();

const second = new Account();
await second.listen();
second.saveClientInformation({ ...first.clientInformation(), redirect_uris: [second.redirectUrl] });
second.saveTokens(first.tokens());
console.log("connects again");
client = await connect(second);
console.log(`again ${JSON.stringify(await client.callTool({ name: "whoami", arguments: {} }))}`);
await client.close();
first.close();
second.close();
