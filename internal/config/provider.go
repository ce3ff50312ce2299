package config

import "github.com/mcp-authd/mcp-authd/thirdparty"

// ConnectorOf converts a provider from a program's form to the form of a file. It is the inverse of
// Connectors.
func ConnectorOf(c thirdparty.Connector) Connector {
	out := Connector{
		ID: c.ID, Type: c.Type, Name: c.Name, Icon: c.Icon,
		ClientID: c.ClientID, ClientSecret: Secret(c.ClientSecret), ClientAuth: c.ClientAuth,
		Key: Secret(c.Key), KeyID: c.KeyID, TeamID: c.TeamID,
		Issuer: c.Issuer, BaseURL: c.BaseURL, Tenant: c.Tenant,
		AuthorizationURL: c.AuthorizationURL, TokenURL: c.TokenURL, UserInfoURL: c.UserInfoURL,
		RevocationURL: c.RevocationURL, IntrospectionURL: c.IntrospectionURL,
		Claims: c.Claims, Scopes: c.Scopes, Parameters: c.Parameters, Domains: c.Domains,
		Allow:      Allow(c.Allow),
		CheckEvery: Duration(c.CheckEvery), CheckBy: c.CheckBy, Outage: Duration(c.Outage),
		Detached: c.Detached,
		Events: ProviderEvents{
			Audience: c.Events.Audience, Issuer: c.Events.Issuer, KeysURL: c.Events.KeysURL,
			BearerToken: Secret(c.Events.BearerToken),
		},
	}
	for _, n := range c.Networks {
		out.Networks = append(out.Networks, n.String())
	}
	for _, r := range c.ScopeRules {
		out.ScopeRules = append(out.ScopeRules,
			ScopeRule{Resource: r.Resource, Scopes: r.Scopes, Groups: r.Groups, Expression: r.Expression})
	}
	for _, r := range c.Broker {
		out.Broker = append(out.Broker, BrokerRule{Resource: r.Resource, Scopes: r.Scopes})
	}
	return out
}
