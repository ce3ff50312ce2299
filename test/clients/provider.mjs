// What a host of the TypeScript SDKs must bring: somewhere to keep what was learnt, a
// redirect URI, and a way to the person, which here is a printed line.
import http from "node:http";

export class Provider {
  constructor() {
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
