package session

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/securecookie"
)

// maxTrips is how many trips a browser may be on at once; of more, the oldest are given
// up, so that cookies never grow beyond what servers accept.
const maxTrips = 8

// Carried is what a browser brings back from a provider.
type Carried struct {
	Binding string `json:"b"` // of the departure
	// UserID is who was signed in at the departure, "" for a new person. One who shares the
	// browser must not finish what another person has begun.
	UserID  string `json:"u,omitempty"`
	Expires int64  `json:"e"`
}

// Departure is a browser that is sent to a provider.
type Departure struct {
	State, Binding string // of the authorization request; see package delegation
	UserID         string // who is signed in, "" for a new person
	ExpiresAt      time.Time
}

// SetTrip sends the cookie that a departure is bound to. It is called after the person
// has approved, just before the browser leaves (AS-220, AS-221), and expires with the
// departure.
func (m *Manager) SetTrip(w http.ResponseWriter, r *http.Request, d Departure) {
	m.limitTrips(w, r)
	name := m.tripName(d.State)
	value, err := m.cookies[0].Encode(name, Carried{d.Binding, d.UserID, d.ExpiresAt.Unix()})
	if err != nil {
		panic("session: " + err.Error()) // short strings always encode
	}
	http.SetCookie(w, m.cookie(name, value, d.ExpiresAt.Sub(m.now())))
}

// Trip returns what this browser carries for the trip with a state, if it is the one that
// departed with it.
func (m *Manager) Trip(r *http.Request, state string) (Carried, bool) {
	c, err := r.Cookie(m.tripName(state))
	if state == "" || err != nil {
		return Carried{}, false
	}
	return m.openTrip(c)
}

// EndTrip removes the cookie of a trip that is over.
func (m *Manager) EndTrip(w http.ResponseWriter, state string) {
	http.SetCookie(w, m.cookie(m.tripName(state), "", -time.Second))
}

func (m *Manager) openTrip(c *http.Cookie) (Carried, bool) {
	var t Carried
	err := securecookie.DecodeMulti(c.Name, c.Value, &t, m.cookies...)
	return t, err == nil && t.Expires > m.now().Unix()
}

// limitTrips makes room for one more trip.
func (m *Manager) limitTrips(w http.ResponseWriter, r *http.Request) {
	type held struct {
		name    string
		expires int64 // zero: no good any more
	}
	var trips []held
	for _, c := range r.Cookies() {
		if !strings.HasPrefix(c.Name, m.trip) {
			continue
		}
		h := held{name: c.Name}
		if t, ok := m.openTrip(c); ok {
			h.expires = t.Expires
		}
		trips = append(trips, h)
	}
	slices.SortStableFunc(trips, func(a, b held) int { return cmp.Compare(b.expires, a.expires) })
	for i, h := range trips {
		if i >= maxTrips-1 || h.expires == 0 {
			http.SetCookie(w, m.cookie(h.name, "", -time.Second))
		}
	}
}

// tripName is the name of a trip's cookie: one for each, so that sign-ins in two tabs do
// not disturb each other. It tells nothing about the state.
func (m *Manager) tripName(state string) string {
	sum := sha256.Sum256([]byte(state))
	return m.trip + base64.RawURLEncoding.EncodeToString(sum[:6])
}
