package doctor

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// providers checks each identity provider.
func (d *doctor) providers(ctx context.Context) {
	if len(d.in.Config.ThirdParty) == 0 {
		return
	}
	if len(d.in.Keys) == 0 { // none yet; a dummy, which encrypts nothing here
		d.in.Keys = [][]byte{make([]byte, 32)}
	}
	delegation, err := thirdparty.New(thirdparty.Config{
		Issuer: d.in.Config.Issuer, Store: noStore{}, SecretKeys: d.in.Keys, Connectors: d.in.Config.Connectors(),
		Logger: d.in.Log, Audit: d.in.Audit,
	})
	if err != nil {
		d.fail("config", "", "%s", err)
		return
	}
	for _, r := range delegation.Probe(ctx) {
		d.provider(ctx, r)
	}
}

// noStore is the store of a read-only delegation.
type noStore struct{ thirdparty.Store }

func (d *doctor) provider(ctx context.Context, r thirdparty.ProbeResult) {
	check, logout := "provider "+r.Connector, ""
	if r.LogoutURI != "" {
		logout = "and, if it offers back-channel logout: " + r.LogoutURI
	}
	d.add(check, "skipped", logout, "make sure that this redirect URI is registered at %s: %s", r.Name, r.RedirectURI)
	for _, f := range r.Findings {
		level, advice := string(f.Verdict), f.Advice
		if f.Verdict == thirdparty.Problem {
			level, advice = "fail", strings.TrimSpace(advice+" See docs/providers/"+r.Type+".md.")
		}
		d.add(check, level, advice, "%s", f.What)
	}
	d.callback(ctx, check, r.RedirectURI)
}

// callback checks whether the redirect URI leads to this server with its current configuration.
// Without a state, the server responds with an error page.
func (d *doctor) callback(ctx context.Context, check, redirectURI string) {
	if !d.running {
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, redirectURI, nil)
	if err != nil {
		d.fail(check, "", "%s", err)
		return
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return // issuer has reported it
	}
	resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusBadRequest:
	case http.StatusNotFound:
		d.fail(check,
			"restart the server if this provider is new; else let the proxy forward everything below the issuer's path",
			"the running server knows no %s", redirectURI)
	default:
		d.warn(check, "let the proxy forward everything below the issuer's path, unchanged",
			"%s answers %s, and should say that no sign-in is in progress", redirectURI, resp.Status)
	}
}

// brokers checks whether the clients that may get provider tokens exist.
func (d *doctor) brokers(ctx context.Context) {
	var wanted []string
	for _, c := range d.in.Config.Connectors() {
		for _, b := range c.Broker {
			if !slices.Contains(wanted, b.Resource) {
				wanted = append(wanted, b.Resource)
			}
		}
	}
	if len(wanted) == 0 {
		return
	}
	able, err := d.operated(ctx)
	if err != nil {
		d.fail("broker", "", "%s", err)
		return
	}
	for _, resource := range wanted {
		if slices.Contains(able, resource) {
			d.ok("broker", "a client may ask for tokens of providers for %s", resource)
			continue
		}
		d.warn("broker", "mcp-authd client add --grant client_credentials --resource "+resource,
			"no confidential client names the resource %s, so no client can ask for tokens of providers for it",
			resource)
	}
}

// operated returns the resources of confidential clients that administrators created.
func (d *doctor) operated(ctx context.Context) (resources []string, err error) {
	clients, err := d.in.Parts().Clients()
	if err != nil {
		return nil, err
	}
	if d.current {
		const pageSize = 500
		for after, more := "", true; more; {
			page, err := d.in.Store.ListClients(ctx, after, pageSize)
			if err != nil {
				return nil, err
			}
			clients = append(clients, page...)
			if more = len(page) == pageSize; more {
				after = page[len(page)-1].ID
			}
		}
	}
	for _, c := range clients {
		if c.Public() || !c.Operated() {
			continue
		}
		for _, r := range c.Resources {
			if uri, err := oauth.CanonicalResource(r); err == nil {
				resources = append(resources, uri)
			}
		}
	}
	return resources, nil
}
