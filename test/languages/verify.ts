import { createRemoteJWKSet, jwtVerify } from "jose";

export function verifier(issuer: string, audience: string, typ: string) {
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks.json`));
  const requiredClaims = ["exp", "iss", "aud", "sub", "client_id"];
  return async (token: string) => {
    const { payload } = await jwtVerify(token, keys, { issuer, audience, typ, algorithms: ["ES256"], requiredClaims });
    if (payload.cnf) throw new Error("bound to a key, of which nothing here asks for a proof");
    return payload;
  };
}
