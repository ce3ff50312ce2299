package installation

import (
	"net/http"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
)

// probeAgent is the User-Agent of the commands doctor and check. It only labels their requests in
// the log, because anyone can send it.
const probeAgent = "mcp-authd-probe"

// Probing labels the requests of a command. With a prober it also signs them, so that a server of
// the same installation does not record them as attempts.
type Probing struct {
	http.RoundTripper
	Prober func() *attempt.Prober
}

// RoundTrip implements http.RoundTripper.
func (p Probing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", probeAgent)
	if by := p.Prober(); by != nil {
		by.Sign(r)
	}
	return p.RoundTripper.RoundTrip(r)
}

// Prober returns nil if the master keys are not loaded.
func (in *Installation) Prober() *attempt.Prober {
	if in == nil || len(in.Keys) == 0 {
		return nil
	}
	p, err := in.Parts().Prober()
	if err != nil {
		return nil
	}
	return p
}
