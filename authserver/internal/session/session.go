// Package session keeps a user signed in in a browser and carries the state of a sign-in from page
// to page.
//
// The session cookie holds a random ID whose hash identifies a row in the store. It contains no
// other data. A second cookie, the browser ID, exists before a user signs in. Every form is sealed
// to it, so that a form for one browser is useless in another (login CSRF, consent CSRF;
// browser.go). Both are encoded with gorilla/securecookie under keys derived from the master keys.
//
// # Sign-in at a provider
//
// When the browser is sent to a provider with an authorization request, it gets another cookie for
// each such sign-in. The cookie holds the secret that binds the response to this browser
// (signincookie.go). Package delegation has the types of the request and its result.
package session

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/securecookie"

	"github.com/mcp-authd/mcp-authd/internal/cookie"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Config configures a Manager. SecretKeys and Issuer are required.
type Config struct {
	SecretKeys [][]byte
	// Issuer decides the names of the cookies and whether they are Secure (internal/cookie).
	Issuer string
	TTL    time.Duration    // lifetime of a sign-in; default 14 days
	Now    func() time.Time // default time.Now
}

// Manager creates and reads cookies and sealed steps. It accesses no store: it returns the data
// that the caller must store. It is safe for concurrent use.
type Manager struct {
	secure          bool
	session, device string // cookie names
	chosen, asked   string // language cookies
	waiting         string // cookie of Held
	signedOut       string // cookie of SignedOut
	browser, signIn string // name prefixes of cookies that a browser can have several of
	// before maps each cookie name to its name in earlier versions, which all servers of a host
	// shared. Earlier names are still read, so that an upgrade signs nobody out. Sessions are also
	// set under them while two versions run side by side. Remove the map one minor version after
	// the first release with the new names: sessions last 14 days by default.
	before  map[string]string
	ttl     time.Duration
	now     func() time.Time
	cookies []securecookie.Codec
	steps   []securecookie.Codec
}

const (
	deviceTTL     = 365 * 24 * time.Hour
	stepTTL       = time.Hour
	maxStepLength = 32 << 10 // bytes, encoded; a request of 6 KiB fits
)

// New returns a manager.
func New(c Config) (*Manager, error) {
	ring, err := secrets.NewRing(c.SecretKeys...)
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	m := &Manager{
		secure: cookie.Secure(c.Issuer), ttl: c.TTL, now: c.Now, before: map[string]string{},
		asked: cookie.Name(c.Issuer, "asked-language"), signedOut: cookie.Name(c.Issuer, "signed-out"),
		// Both versions use this name. A random part follows, so two issuers never collide.
		signIn: cookie.Shared(c.Issuer, "trip-"),
	}
	for purpose, name := range map[string]*string{
		"session": &m.session, "browser": &m.browser, "device": &m.device, "language": &m.chosen,
		"accounts": &m.waiting,
	} {
		*name = cookie.Name(c.Issuer, purpose)
		m.before[*name] = cookie.Shared(c.Issuer, purpose)
	}
	if m.ttl == 0 {
		m.ttl = 14 * 24 * time.Hour
	}
	if m.now == nil {
		m.now = time.Now
	}
	m.cookies = codecs(ring, "cookie", int(deviceTTL/time.Second), 4096)
	m.steps = codecs(ring, "step", 0, maxStepLength)
	return m, nil
}

// codecs returns one codec per master key, the primary first, so that a change of the master key
// signs no user out.
func codecs(ring *secrets.Ring, purpose string, maxAge, maxLength int) []securecookie.Codec {
	hash, block := ring.Keys(purpose+" mac", 32), ring.Keys(purpose+" encryption", 32)
	out := make([]securecookie.Codec, len(hash))
	for i := range hash {
		c := securecookie.New(hash[i], block[i])
		c.SetSerializer(securecookie.JSONEncoder{}) // the default, gob, is slow and harder to limit
		c.MaxAge(maxAge)
		c.MaxLength(maxLength)
		out[i] = c
	}
	return out
}

// Minted is a new session that is not stored yet, with its cookie value.
type Minted struct {
	Session storage.Session
	value   string
}

// Mint creates a session for a user. The caller adds how and where the user signed in. The ID is
// always new, so an ID planted in the browser before the sign-in is useless (session fixation).
func (m *Manager) Mint(userID string) Minted {
	token := secrets.Token("")
	now := m.now()
	return Minted{storage.Session{
		Hash: secrets.Hash(token), UserID: userID, AuthTime: now, CreatedAt: now, ExpiresAt: now.Add(m.ttl),
		ProvedAt: now, SeenAt: now,
	}, token}
}

// Clear removes the session cookie. Other sessions that the browser holds remain.
func (m *Manager) Clear(w http.ResponseWriter, r *http.Request) {
	m.remove(w, r, m.session)
}

// Token returns the hash of the session ID in the request.
func (m *Manager) Token(r *http.Request) (storage.Hash, bool) {
	token, ok := m.read(r, m.session)
	if !ok {
		return storage.Hash{}, false
	}
	return secrets.Hash(token), true
}

// KnownBrowser is a browser where a user has signed in before. The zero value is an unknown
// browser.
type KnownBrowser struct {
	Name string // of the user, in lower case
	ID   string // distinguishes this browser from the user's other browsers
}

// Remember records that a user has signed in from this browser.
func (m *Manager) Remember(w http.ResponseWriter, r *http.Request, name string) {
	name = strings.ToLower(name)
	d := m.KnownBrowser(r)
	if d.Name != name || d.ID == "" {
		d = KnownBrowser{name, secrets.Token("")}
	}
	m.set(w, m.device, d.Name+"\n"+d.ID, deviceTTL)
}

// KnownBrowser returns the user who has signed in from this browser before. Records from versions
// without IDs have an empty ID.
func (m *Manager) KnownBrowser(r *http.Request) (d KnownBrowser) {
	if value, ok := m.read(r, m.device); ok {
		d.Name, d.ID, _ = strings.Cut(value, "\n")
	}
	return d
}

// read returns the newest value of a cookie among its current and its earlier name.
func (m *Manager) read(r *http.Request, name string) (value string, ok bool) {
	values := m.readAll(r, name)
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// readAll returns the values of a cookie under its current and its earlier name, newest first. They
// differ if a server of an earlier version, which sets only the earlier name, has set it since.
func (m *Manager) readAll(r *http.Request, name string) []string {
	now, isNow := m.readDated(r, name)
	before, isBefore := dated{}, false
	if m.before[name] != "" {
		before, isBefore = m.readDated(r, m.before[name])
	}
	switch {
	case isNow && isBefore && before.made > now.made:
		return []string{before.value, now.value}
	case isNow && isBefore:
		return []string{now.value, before.value}
	case isNow:
		return []string{now.value}
	case isBefore:
		return []string{before.value}
	}
	return nil
}

// dated is the value of a cookie with the Unix time of its creation.
type dated struct {
	value string
	made  int64
}

func (m *Manager) readNamed(r *http.Request, name string) (value string, ok bool) {
	d, ok := m.readDated(r, name)
	return d.value, ok
}

// readDated returns the value of the first cookie of a name that this server created. A browser
// sends several if another application on the host has set one. This server cannot replace that one
// if it has a longer path (RFC 6265 §5.4).
func (m *Manager) readDated(r *http.Request, name string) (dated, bool) {
	for _, c := range r.CookiesNamed(name) {
		if value, ok := m.decode(c); ok {
			return dated{value, madeAt(c)}, true
		}
	}
	return dated{}, false
}

// madeAt returns when a valid cookie was created: securecookie signs the date before the value.
func madeAt(c *http.Cookie) int64 {
	raw, _ := base64.URLEncoding.DecodeString(c.Value)
	date, _, _ := strings.Cut(string(raw), "|")
	made, _ := strconv.ParseInt(date, 10, 64)
	return made
}

func (m *Manager) decode(c *http.Cookie) (value string, ok bool) {
	err := securecookie.DecodeMulti(c.Name, c.Value, &value, m.cookies...)
	return value, err == nil
}

// retire removes the cookie with the earlier name if this server set it. Another server on the host
// may have set it.
func (m *Manager) retire(w http.ResponseWriter, r *http.Request, name string) {
	if _, ours := m.readNamed(r, m.before[name]); ours {
		http.SetCookie(w, m.cookie(m.before[name], "", -time.Second))
	}
}

// share also sets a session under the earlier name, for servers of the previous version that run
// beside this one. It does not replace the cookie of another server on the host.
func (m *Manager) share(w http.ResponseWriter, r *http.Request, name, value string, ttl time.Duration) {
	before := m.before[name]
	if _, ours := m.readNamed(r, before); ours || len(r.CookiesNamed(before)) == 0 {
		m.set(w, before, value, ttl)
	}
}

func (m *Manager) remove(w http.ResponseWriter, r *http.Request, name string) {
	m.retire(w, r, name)
	http.SetCookie(w, m.cookie(name, "", -time.Second))
}

func (m *Manager) set(w http.ResponseWriter, name, value string, ttl time.Duration) {
	http.SetCookie(w, m.cookie(name, m.encode(name, value), ttl))
}

func (m *Manager) encode(name, value string) string {
	s, err := m.cookies[0].Encode(name, value)
	if err != nil {
		panic("session: " + err.Error()) // a short string always encodes
	}
	return s
}

// cookie returns a cookie with Path=/, even if the issuer has a path, as the __Host- prefix
// requires (AS-75).
func (m *Manager) cookie(name, value string, ttl time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(ttl / time.Second),
		Secure: m.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// ErrStep means that a sealed step is forged, too old, or for another browser or purpose. It does
// not say which.
var ErrStep = errors.New("session: step is not valid")

// ErrStepSize means that a state is too large to be carried in a form.
var ErrStepSize = errors.New("session: state is too large")

// step is the sealed content: the state and its binding.
type step[T any] struct {
	Browser string `json:"b"`
	Expires int64  `json:"e"`
	State   T      `json:"s"`
}

// SealStep encrypts and signs the state of a page for its form. The result opens only for the same
// purpose, in the same browser, within an hour.
func (m *Manager) SealStep(purpose, browser string, state any) (string, error) {
	s, err := m.steps[0].Encode(purpose, step[any]{browser, m.now().Add(stepTTL).Unix(), state})
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrStepSize, err)
	}
	return s, nil
}

// OpenStep decodes the result of SealStep into state, or returns ErrStep.
func (m *Manager) OpenStep(purpose, browser, sealed string, state any) error {
	s := step[any]{State: state}
	if sealed == "" || len(sealed) > maxStepLength {
		return ErrStep
	}
	if err := securecookie.DecodeMulti(purpose, sealed, &s, m.steps...); err != nil {
		return ErrStep
	}
	if s.Browser != browser || s.Expires <= m.now().Unix() {
		return ErrStep
	}
	return nil
}
