package main

import (
	"io"
	"net/http"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
)

// probeAgent is the User-Agent of the commands doctor and check. It only labels their requests in
// the log, because anyone can send it.
const probeAgent = "mcp-authd-probe"

// probing labels the requests of a command. With a prober it also signs them, so that a server of
// the same installation does not record them as attempts.
type probing struct {
	http.RoundTripper
	prober func() *attempt.Prober
}

// RoundTrip implements http.RoundTripper.
func (p probing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", probeAgent)
	if by := p.prober(); by != nil {
		by.Sign(r)
	}
	return p.RoundTripper.RoundTrip(r)
}

// prober returns nil if the master keys are not loaded.
func (a *app) prober() *attempt.Prober {
	if a == nil || len(a.keys) == 0 {
		return nil
	}
	p, err := a.parts().Prober()
	if err != nil {
		return nil
	}
	return p
}

// localProber returns the prober of the installation on this machine. It returns nil without a key.
// Without flags, it also returns nil if the key cannot be read, because check can test other
// servers. With flags, it returns errors in the configuration or key.
func (w settings) localProber(s std) (*attempt.Prober, error) {
	s.err = io.Discard
	a, err := w.load(s)
	if err == nil && a.hasKey() {
		err = a.loadKeys(a.keptKey)
	}
	if err != nil && w != (settings{}) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return a.prober(), nil
}
