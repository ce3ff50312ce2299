package attempt

import (
	"net/netip"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/network"
)

// How many steps are kept, on each server: what floods it does not push out the others (OB-01).
var (
	// perAttempt is of one attempt: a client that tries again and again fills nothing but its own.
	perAttempt = bounded.PerSecond(1.0/60, 64)
	// perPerson is of all attempts of one person who has signed in, from anywhere: people who use a client
	// that runs elsewhere come from one network, and do not share what that has.
	perPerson = bounded.PerSecond(0.1, 600)
	// perAgent is of one client in one network, and perNetwork of all of a network: of what nobody has
	// signed in for.
	perAgent   = bounded.PerSecond(1, 300)
	perNetwork = bounded.PerSecond(1, 600)
)

const (
	networks = 10_000         // that are counted
	shares   = 50_000         // attempts, people, and clients in networks
	vouchFor = 24 * time.Hour // after which a grant that is used has signed in again
)

// share divides what may be kept.
type share struct {
	now      func() time.Time
	networks *bounded.Limiter[string]
	rest     *bounded.Limiter[string]
	signed   *bounded.Map[string, string] // who has signed in, by what only one attempt has
}

func newShare(now func() time.Time) *share {
	return &share{
		now:      now,
		networks: bounded.NewLimiter[string](networks, now),
		rest:     bounded.NewLimiter[string](shares, now),
		signed:   bounded.New[string, string](shares, now),
	}
}

// admits reports whether a step is kept. It counts for the person of its attempt, or else for its network.
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

// person is who has signed in for the attempt of a step, "" when that is not known here. A step that failed
// is about a person whom the request only names.
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
