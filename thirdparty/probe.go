package thirdparty

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Check reports what is wrong with the configuration of a connector, as New would, and
// talks to nobody. Its error wraps ErrConfig and names the field.
func Check(c Connector) error { return c.validate() }

// Look is what somebody who sets up a connector wants to know about it.
type Look struct {
	Name        string // "GitHub"
	RedirectURI string // to register at the provider
	LogoutURI   string // to register for back-channel logout; "" where there is none
	Guide       string // the page about the type, below docs/
	// Clock is by how much the clock of the provider is ahead of ours, to about a second;
	// ClockKnown: it has said what time it is.
	Clock      time.Duration
	ClockKnown bool
	// Problem says what keeps people from signing in there, "" for nothing, as far as it can
	// be seen without a person, and Advice what to do about it.
	Problem, Advice string
}

// Probe looks at a provider: whether it can be reached, is who it should be and accepts
// our credentials. It has it redeem a code that is none, which has no effect. The error
// is for a connector that there is not.
func (d *Delegation) Probe(ctx context.Context, connector string) (Look, error) {
	c, ok := d.byID[connector]
	if !ok {
		return Look{}, fmt.Errorf("thirdparty: there is no connector %q", connector)
	}
	out := Look{Name: c.public().Name, RedirectURI: c.redirectURI(), Guide: "providers/" + c.Type + ".md"}
	if c.preset.openID {
		out.LogoutURI = out.RedirectURI + "/logout"
	}
	heard := &dates{now: d.cfg.Now}
	err := c.probe(context.WithValue(ctx, datesKey{}, heard))
	out.Clock, out.ClockKnown = heard.difference()
	if err != nil {
		out.Problem, out.Advice = err.Error(), c.advise(err)
	}
	return out, nil
}

func (c *connector) advise(err error) string {
	switch {
	case errors.Is(err, errUnreachable):
		return "check that this machine reaches " + c.public().Host + " (name, route, firewall), and the status page of the provider"
	case errors.Is(err, errMisconfigured):
		return "check client_id and client_secret, and at the provider that the client is active and may use the authorization code flow"
	case c.preset.openID:
		return "check that issuer, base_url or tenant is the provider's own, and that no proxy answers in its place"
	}
	return "check the addresses of the endpoints, and that no proxy answers in their place"
}

type datesKey struct{}

// dates learn from answers what time a provider has.
type dates struct {
	now func() time.Time

	mu    sync.Mutex // guards what follows
	ahead time.Duration
	known bool
}

// noteDate tells the dates in ctx, if there are any, what an answer says.
func noteDate(ctx context.Context, h http.Header) {
	d, ok := ctx.Value(datesKey{}).(*dates)
	if !ok {
		return
	}
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ahead, d.known = at.Sub(d.now().Truncate(time.Second)), true
}

func (d *dates) difference() (time.Duration, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ahead, d.known
}
