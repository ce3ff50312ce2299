package main

import "github.com/mcp-authd/mcp-authd/bench/internal/client"

// scenario is one kind of work. Each worker prepares its state once, outside the measurement.
type scenario struct {
	name    string
	prepare func() (op func() error, err error)
}

func scenarios(c *client.Client, o options) []scenario {
	all := []scenario{
		{"metadata", func() (func() error, error) {
			return func() error { return c.GetJSON(client.MetadataURL(c.Issuer()), nil) }, nil
		}},
		{"jwks", func() (func() error, error) { return func() error { return c.GetJSON(c.Metadata.JWKS, nil) }, nil }},
		{"register", func() (func() error, error) { return func() error { _, err := c.Register(); return err }, nil }},
		{"authorize+code", func() (func() error, error) { return signedIn(c, o) }},
		{"refresh", func() (func() error, error) { return refreshing(c, o) }},
	}
	if o.clientID == "" {
		return all
	}
	return append(all,
		scenario{"client_credentials", func() (func() error, error) {
			return func() error { _, err := c.MachineToken(); return err }, nil
		}},
		scenario{"introspect", func() (func() error, error) { return introspecting(c) }})
}

// signedIn returns the operation of a browser with a session and remembered consent: one
// authorization request and one code exchange.
func signedIn(c *client.Client, o options) (func() error, error) {
	p, err := c.NewPerson(o.user, o.password)
	if err != nil {
		return nil, err
	}
	if _, err := p.SignIn(); err != nil {
		return nil, err
	}
	return func() error { _, err := p.Again(); return err }, nil
}

func refreshing(c *client.Client, o options) (func() error, error) {
	p, err := c.NewPerson(o.user, o.password)
	if err != nil {
		return nil, err
	}
	reply, err := p.SignIn()
	if err != nil {
		return nil, err
	}
	return func() error {
		next, err := c.Refresh(reply.RefreshToken)
		if err == nil {
			reply = next
		}
		return err
	}, nil
}

func introspecting(c *client.Client) (func() error, error) {
	reply, err := c.MachineToken()
	if err != nil {
		return nil, err
	}
	return func() error { return c.Introspect(reply.AccessToken) }, nil
}
