using Microsoft.IdentityModel.JsonWebTokens;
using Microsoft.IdentityModel.Protocols;
using Microsoft.IdentityModel.Protocols.OpenIdConnect;
using Microsoft.IdentityModel.Tokens;

class Verifier(string issuer, string audience, string typ)
{
    readonly ConfigurationManager<OpenIdConnectConfiguration> metadata = new(
        issuer + "/.well-known/oauth-authorization-server", new OpenIdConnectConfigurationRetriever());

    public async Task<IDictionary<string, object>> Verify(string token)
    {
        var result = await new JsonWebTokenHandler().ValidateTokenAsync(token, new TokenValidationParameters
        {
            ValidIssuer = issuer, ValidAudience = audience, ValidTypes = [typ], ValidAlgorithms = ["ES256"],
            ConfigurationManager = metadata, ClockSkew = TimeSpan.Zero,
        });
        if (!result.IsValid) throw result.Exception;
        if (result.Claims.ContainsKey("cnf")) throw new SecurityTokenException("bound to a key, without a proof");
        return result.Claims;
    }
}
