// The TypeScript SDK v2: sign in, call a tool, and step up when it needs more scope.
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { Provider } from "./provider.mjs";

const [, , url, tool] = process.argv;
const authProvider = new Provider();
await authProvider.listen();

// attempt runs fn on a fresh connection; when the server asks for authorization it
// finishes that and reports that fn is to be run again.
const attempt = async (fn) => {
  const client = new Client({ name: "sdk-v2", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
  try {
    await client.connect(transport);
    const result = await fn(client);
    await client.close();
    return { result };
  } catch (e) {
    if (!(e instanceof UnauthorizedError)) throw e;
    await transport.finishAuth(await authProvider.answer()); // with iss, which v2 checks
    await client.close();
    return { again: true };
  }
};

const args = tool === "add_note" ? { text: "from a test" } : {};
for (let i = 0; i < 4; i++) {
  const { result, again } = await attempt((client) => client.callTool({ name: tool, arguments: args }));
  if (!again) {
    console.log(JSON.stringify(result));
    break;
  }
}
authProvider.close();
