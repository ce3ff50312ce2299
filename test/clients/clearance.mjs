// A TypeScript SDK, v1 or v2, in an era, which shows links or does not, as a host drives it that is told what to do:
// "call" calls the tool pay. What happens is a line of JSON each.
import readline from "node:readline";
import { Provider } from "./provider.mjs";

const [, , version, url, era, links] = process.argv;
const v1 = version === "v1";
const { Client, StreamableHTTPClientTransport, UnauthorizedError, UrlElicitationRequiredError, ElicitRequestSchema } = v1
  ? {
      ...(await import("@modelcontextprotocol/sdk/client/index.js")),
      ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
      ...(await import("@modelcontextprotocol/sdk/client/auth.js")),
      ...(await import("@modelcontextprotocol/sdk/types.js")),
    }
  : await import("@modelcontextprotocol/client");

const say = (what) => console.log(JSON.stringify(what));

class Host extends Provider {
  redirectToAuthorization(to) { say({ visit: String(to) }); }
}

const provider = new Host();
await provider.listen();
let client, transport;
// A host finishes what the SDK has begun, and tries once more when it is told to.
const finish = async () => {
  const back = await provider.answer();
  await transport.finishAuth(v1 ? back.get("code") : back);
};
const connect = async () => {
  const o = { capabilities: links ? { elicitation: { url: {} } } : {} };
  if (era !== "2025-11-25") o.versionNegotiation = { mode: { pin: era } };
  client = new Client({ name: `clearance-${version}`, version: "1" }, o);
  client.onerror = () => {}; // the call says it, too
  if (links) {
    // The host shows the link, and takes the person's consent to open it; what they do there it cannot know.
    client.setRequestHandler(v1 ? ElicitRequestSchema : "elicitation/create", async (r) => {
      say({ visit: r.params.url, mode: r.params.mode, message: r.params.message });
      return { action: "accept" };
    });
  }
  transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  await client.connect(transport);
};
try {
  await connect();
} catch (e) {
  if (!(e instanceof UnauthorizedError)) throw e;
  await finish();
  await connect();
}
say({ connected: true });

for await (const line of readline.createInterface({ input: process.stdin })) {
  if (line !== "call") throw new Error(`told to ${line}`);
  const pay = { name: "pay", arguments: { amount: 101, to: "bob" } };
  const options = { timeout: 180000 };
  try {
    say({ result: await (v1 ? client.callTool(pay, undefined, options) : client.callTool(pay, options)) });
  } catch (e) {
    if (e instanceof UnauthorizedError) {
      await finish();
      say({ finished: true });
    } else if (e instanceof UrlElicitationRequiredError) {
      say({ visit: e.elicitations[0].url, mode: e.elicitations[0].mode, code: e.code });
    } else {
      say({ error: `${e.name}: ${e.message}`, code: e.code });
    }
  }
}
await client.close();
provider.close();
