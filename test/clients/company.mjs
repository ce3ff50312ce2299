// The TypeScript SDK v2 for a person of a company: an id_token becomes an ID-JAG at the company's
// identity provider, and that an access token at ours (SEP-990).
import {
  Client,
  CrossAppAccessProvider,
  discoverAndRequestJwtAuthGrant,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";

const told = JSON.parse(process.argv[2]);
const authProvider = new CrossAppAccessProvider({
  assertion: async (context) => {
    const { jwtAuthGrant } = await discoverAndRequestJwtAuthGrant({
      idpUrl: told.provider,
      audience: context.authorizationServerUrl,
      resource: context.resourceUrl,
      idToken: told.idToken,
      clientId: told.app,
      clientSecret: told.appSecret,
      scope: context.scope,
      fetchFn: context.fetchFn,
    });
    return jwtAuthGrant;
  },
  clientId: told.clientId,
  clientSecret: told.clientSecret,
  expectedIssuer: told.issuer,
});
const client = new Client({ name: "desk", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(told.url), { authProvider }));
console.log(JSON.stringify(await client.callTool({ name: "whoami", arguments: {} })));
await client.close();
