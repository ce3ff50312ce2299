package main

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// providers looks at each upstream provider, all at once.
func (d *doctor) providers(ctx context.Context) {
	a := d.app
	if len(a.config.ThirdParty) == 0 {
		return
	}
	if len(a.keys) == 0 { // none yet; it seals nothing here
		a.keys = [][]byte{make([]byte, 32)}
	}
	delegation, err := thirdparty.New(thirdparty.Config{
		Issuer: a.config.Issuer, Store: noStore{}, SecretKeys: a.keys, Connectors: a.config.Connectors(), Logger: a.log, Audit: a.audit,
	})
	if err != nil {
		d.fail("config", "", "%s", err)
		return
	}
	looks := make([]thirdparty.Look, len(a.config.ThirdParty))
	var group sync.WaitGroup
	for i, c := range a.config.ThirdParty {
		group.Go(func() { looks[i], _ = delegation.Probe(ctx, c.ID) }) // it is one of the configuration
	}
	group.Wait()
	for i, c := range a.config.ThirdParty {
		d.provider(ctx, c, looks[i])
	}
}

// noStore is for a delegation that only looks.
type noStore struct{ thirdparty.Store }

func (d *doctor) provider(ctx context.Context, c config.Connector, l thirdparty.Look) {
	check := "provider " + c.ID
	d.add(check, "ok", logoutAdvice(l), "register this redirect URI at %s: %s", l.Name, l.RedirectURI)
	if l.Problem != "" {
		d.fail(check, l.Advice+"; see docs/"+l.Guide, "nobody can sign in at %s: %s", l.Name, l.Problem)
	} else {
		d.ok(check, "%s can be reached and accepts client_id and client_secret", l.Name)
	}
	if l.ClockKnown {
		d.clock(l)
	}
	d.callback(ctx, check, l)
}

func logoutAdvice(l thirdparty.Look) string {
	if l.LogoutURI == "" {
		return ""
	}
	return "and, if it offers back-channel logout: " + l.LogoutURI
}

// What two clocks may differ by: ID tokens are given a minute.
const (
	clockWarning = 15 * time.Second
	clockFailure = time.Minute
)

// clock compares our clock with that of a provider.
func (d *doctor) clock(l thirdparty.Look) {
	off := l.Clock.Abs().Round(time.Second)
	const advice = "set the clock of this machine by NTP; sign-ins fail when the two differ by more than a minute"
	switch {
	case off > clockFailure:
		d.fail("clock", advice, "the clock of %s and ours differ by %s", l.Name, off)
	case off > clockWarning:
		d.warn("clock", advice, "the clock of %s and ours differ by %s", l.Name, off)
	default:
		d.ok("clock", "agrees with that of %s", l.Name)
	}
}

// callback sees whether the redirect URI leads to this server, as configured now. Without
// a state there is nothing to come back to, which the server says with a page.
func (d *doctor) callback(ctx context.Context, check string, l thirdparty.Look) {
	if !d.running {
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.RedirectURI, nil)
	if err != nil {
		d.fail(check, "", "%s", err)
		return
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return // the issuer has told about it
	}
	resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusBadRequest:
	case http.StatusNotFound:
		d.fail(check, "restart the server if this provider is new; else let the proxy forward everything below the issuer's path", "the running server knows no %s", l.RedirectURI)
	default:
		d.warn(check, "let the proxy forward everything below the issuer's path, unchanged", "%s answers %s, and should say that nobody is under way", l.RedirectURI, resp.Status)
	}
}

// brokers sees whether those that may have upstream tokens are there to ask for them.
func (d *doctor) brokers(ctx context.Context) {
	var wanted []string
	for _, c := range d.app.config.Connectors() {
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
			d.ok("broker", "a client may ask for upstream tokens for %s", resource)
			continue
		}
		d.warn("broker", "mcp-authd client add --grant client_credentials --resource "+resource,
			"no confidential client names the resource %s, so nobody can ask for its upstream tokens", resource)
	}
}

// operated returns the resources that confidential clients of the operator name.
func (d *doctor) operated(ctx context.Context) (resources []string, err error) {
	a := d.app
	clients, err := a.configuredClients()
	if err != nil {
		return nil, err
	}
	if d.current {
		stored, err := pages(func(after string) ([]storage.Client, string, error) {
			page, err := a.store.ListClients(ctx, after, pageSize)
			if len(page) > 0 {
				after = page[len(page)-1].ID
			}
			return page, after, err
		})
		if err != nil {
			return nil, err
		}
		clients = append(clients, stored...)
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
