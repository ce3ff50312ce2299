package lab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Consent is the path where a server on another machine permits tests, in a line "mcp-authd lab
// until DATE" with the last day, such as 2026-12-31.
const Consent = "/.well-known/mcp-authd-lab"

// consentFor limits how far ahead the last day may be, so that a forgotten file expires.
const consentFor = 366 * 24 * time.Hour

// ErrNoConsent means that a server does not permit tests.
var ErrNoConsent = errors.New("the server does not say that it may be tested")

// consented returns ErrNoConsent, wrapped, for a server on another machine without consent.
func (b *bench) consented(ctx context.Context) error {
	if b.loopback {
		return nil
	}
	location := discovery.Origin(b.issuer) + Consent
	got, err := b.get(ctx, location, nil)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNoConsent, location, err)
	}
	if got.status == http.StatusOK {
		for line := range strings.Lines(string(got.body)) {
			text, isOurs := strings.CutPrefix(strings.TrimSpace(line), "mcp-authd lab until ")
			last, err := time.Parse(time.DateOnly, text)
			now := b.o.Now()
			if isOurs && err == nil && now.Before(last.AddDate(0, 0, 1)) && last.Before(now.Add(consentFor)) {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: %s has no line \"mcp-authd lab until %s\"", ErrNoConsent, location,
		b.o.Now().UTC().AddDate(0, 0, 7).Format(time.DateOnly))
}

// newBench checks the issuer and prepares a run.
func newBench(issuer string, o Options) (*bench, error) {
	if err := discovery.CheckURL(issuer); err != nil {
		return nil, err
	}
	u, err := url.Parse(issuer)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &bench{
		o: o, issuer: issuer, client: discovery.New(o.Transport), loopback: oauth.IsLoopbackHost(u.Hostname()),
		found: map[string]*answer{},
	}, nil
}
