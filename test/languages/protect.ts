import type { Express } from "express";
import { InvalidTokenError } from "@modelcontextprotocol/sdk/server/auth/errors.js";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import { getOAuthProtectedResourceMetadataUrl, mcpAuthMetadataRouter }
  from "@modelcontextprotocol/sdk/server/auth/router.js";
import { verifier } from "./verify.ts";

export async function protect(app: Express, issuer: string, resource: string) {
  const verify = verifier(issuer, resource, "at+jwt"), resourceServerUrl = new URL(resource);
  const oauthMetadata = await (await fetch(`${issuer}/.well-known/oauth-authorization-server`)).json();
  app.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl, scopesSupported: ["mcp"] }));
  const verifyAccessToken = async (token: string) => {
    const c = await verify(token).catch(() => { throw new InvalidTokenError("not a token of this server"); });
    return { token, clientId: c.client_id as string, scopes: (c.scope as string ?? "").split(" "), expiresAt: c.exp,
      resource: resourceServerUrl, extra: { subject: c.sub } };
  };
  app.use("/mcp", ({ headers: { origin } }, res, next) => // web pages of other origins may not call
    void (origin && origin !== resourceServerUrl.origin ? res.status(403).end() : next()));
  app.use("/mcp", requireBearerAuth({ verifier: { verifyAccessToken }, requiredScopes: ["mcp"],
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resourceServerUrl) }));
}
