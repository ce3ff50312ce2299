package session

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

const (
	chosenTTL = 365 * 24 * time.Hour
	askedTTL  = time.Hour // as long as the forms of a flow are valid
)

// Language is the page language in a browser: chosen there, or taken from the account of the last
// user who signed in. The zero value is an unset language.
type Language struct {
	Tag string // BCP 47, as returned by the browser
	// pending means that it was chosen in this browser and is not stored in an account.
	pending bool
	by      string // mark of the user who chose it, "" if no user was signed in
}

// PendingOf reports whether the user chose the language in this browser and it is not stored in
// their account yet. For "", it reports whether the language was chosen while no user was signed
// in.
func (l Language) PendingOf(userID string) bool { return l.pending && l.by == personMark(userID) }

// personMark returns a mark that distinguishes the users of a browser. The cookie remains after a
// sign-out, so the mark does not reveal the account.
func personMark(userID string) string {
	if userID == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("language of " + userID))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// Languages returns the page language in this browser and the language of the last authorization
// request, or "". The cookies are not sealed, because they affect only the text of pages.
func (m *Manager) Languages(r *http.Request) (chosen Language, asked string) {
	if c, err := r.Cookie(m.asked); err == nil {
		asked = c.Value
	}
	c, err := r.Cookie(m.chosen)
	if err != nil {
		c, err = r.Cookie(m.before[m.chosen])
	}
	if err == nil {
		chosen.Tag, chosen.by, chosen.pending = strings.Cut(c.Value, ".")
	}
	return chosen, asked
}

// ChooseLanguage stores the language that a user has chosen in the browser. userID is "" if no user
// is signed in.
func (m *Manager) ChooseLanguage(w http.ResponseWriter, tag, userID string) {
	http.SetCookie(w, m.cookie(m.chosen, tag+"."+personMark(userID), chosenTTL))
}

// FollowLanguage sets the browser's language to an account's, or to "" for an account without one.
// The empty cookie is kept, so that the cookie with the earlier name is ignored.
func (m *Manager) FollowLanguage(w http.ResponseWriter, tag string) {
	http.SetCookie(w, m.cookie(m.chosen, tag, chosenTTL))
}

// AskLanguage stores the language of an authorization request until the next one; "" removes it.
func (m *Manager) AskLanguage(w http.ResponseWriter, r *http.Request, tag string) {
	_, asked := m.Languages(r)
	switch {
	case tag == asked:
	case tag == "":
		http.SetCookie(w, m.cookie(m.asked, "", -time.Second))
	default:
		http.SetCookie(w, m.cookie(m.asked, tag, askedTTL))
	}
}
