// What a host of the TypeScript SDKs must bring: somewhere to keep what was learnt, a
// redirect URI, and a way to the person, which here is a printed line.
import http from "node:http";
import { setTimeout as pause } from "node:timers/promises";

export class Provider {
  // With the URL of its metadata document a client need not register.
  constructor(clientMetadataUrl) {
    this.clientMetadataUrl = clientMetadataUrl || undefined;
    this.codes = [];
    this.waiting = [];
  }

  async listen() {
    this.server = http.createServer((req, res) => {
      const url = new URL(req.url, "http://127.0.0.1");
      res.end("You can close this window.");
      if (url.pathname === "/callback") {
        const take = this.waiting.shift();
        take ? take(url.searchParams) : this.codes.push(url.searchParams);
      }
    });
    await new Promise((ok) => this.server.listen(0, "127.0.0.1", ok));
    this.redirectUrl = `http://127.0.0.1:${this.server.address().port}/callback`;
  }

  // answer is what the browser comes back with.
  answer() {
    const ready = this.codes.shift();
    return ready ? Promise.resolve(ready) : new Promise((ok) => this.waiting.push(ok));
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  get clientMetadata() {
    return {
      client_name: "TypeScript SDK test",
      redirect_uris: [this.redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    };
  }

  clientInformation() { return this.client; }
  saveClientInformation(client) { this.client = client; }
  tokens() { return this.kept; }
  saveTokens(tokens) { this.kept = tokens; }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  codeVerifier() { return this.verifier; }
  state() { return crypto.randomUUID(); }
  redirectToAuthorization(url) { console.error(`visit ${url}`); }
}

// run does the steps that the command line names after the URL of the server and that of
// the client's document, which may be empty: tools to call, and pauses in seconds. Each
// result is printed. attempt(provider, url, fn) runs fn with a connected client, or has
// the person sign in and returns undefined.
export async function run(attempt) {
  const [, , url, document, ...steps] = process.argv;
  const provider = new Provider(document);
  await provider.listen();
  try {
    for (const step of steps) {
      if (Number(step)) {
        await pause(1000 * step);
        continue;
      }
      const args = step === "add_note" ? { text: "from a test" } : {};
      const call = (client) => client.callTool({ name: step, arguments: args });
      let result;
      for (let i = 0; i < 4 && !result; i++) result = await attempt(provider, new URL(url), call);
      if (!result) throw new Error(`${step}: asked to sign in again and again`);
      console.log(JSON.stringify(result));
    }
  } finally {
    provider.close();
  }
}
