package attempt

import (
	"net/netip"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/network"
)

// Limits of the stored steps, per server, so that a flood does not displace other steps (OB-01).
var (
	// perAttempt limits one attempt, so that a client that retries forever fills only its own
	// share.
	perAttempt = bounded.PerSecond(1.0/60, 64)
	// perPerson limits all attempts of one signed-in user, from anywhere. The users of a hosted
	// client come from one network, and do not share its limit.
	perPerson = bounded.PerSecond(0.1, 600)
	// perAgent limits one client in one network, and perNetwork a whole network, before any
	// sign-in.
	perAgent   = bounded.PerSecond(1, 300)
	perNetwork = bounded.PerSecond(1, 600)
)

const (
	networks = 10_000         // number of counted networks
	shares   = 50_000         // counted attempts, users, and clients in networks
	vouchFor = 24 * time.Hour // how long keys stay attributed to a signed-in user
)

// share applies the limits.
type share struct {
	now      func() time.Time
	networks *bounded.Limiter[string]
	rest     *bounded.Limiter[string]
	signed   *bounded.Map[string, string] // signed-in users, by keys that only one attempt has
}

func newShare(now func() time.Time) *share {
	return &share{
		now:      now,
		networks: bounded.NewLimiter[string](networks, now),
		rest:     bounded.NewLimiter[string](shares, now),
		signed:   bounded.New[string, string](shares, now),
	}
}

// admits reports whether to store a step. The step counts toward the user of its attempt, or else
// toward its network.
func (h *share) admits(s Step) bool {
	person, strong := h.person(s), s.Keys.strong()
	var draws []bounded.Draw[string]
	if len(strong) > 0 {
		draws = append(draws, bounded.Draw[string]{Key: strong[0], Rate: perAttempt})
	}
	if person != "" {
		draws = append(draws, bounded.Draw[string]{Key: keyPerson + person, Rate: perPerson})
		return h.rest.Take(draws...) == 0
	}
	addr, _ := netip.ParseAddr(s.Keys.Address)
	block := network.Blocks(addr)[0]
	agent := block + " " + s.Request.Agent + " " + short(s.Keys.Client)
	draws = append(draws, bounded.Draw[string]{Key: agent, Rate: perAgent})
	return h.rest.Take(draws...) == 0 && h.networks.Take(bounded.Draw[string]{Key: block, Rate: perNetwork}) == 0
}

// person returns the user who signed in for the step's attempt, or "" if unknown here. In a failed
// step, the user is only a claim of the request.
func (h *share) person(s Step) string {
	person := ""
	if !s.failed() {
		person = s.Keys.Person
	}
	for _, key := range s.Keys.strong() {
		if known, ok := h.signed.Get(key); ok && person == "" {
			person = known
		}
	}
	if person != "" {
		for _, key := range s.Keys.strong() {
			h.signed.Put(key, person, h.now().Add(vouchFor))
		}
	}
	return person
}
