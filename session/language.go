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
	askedTTL  = time.Hour // as long as the forms of a flow are good
)

// Language is the language of the pages in a browser: it was chosen there, or is that of the account of
// the person who signed in last. The zero value means that the browser has not chosen.
type Language struct {
	Tag string // BCP 47, as the browser returns it
	// pending: chosen in this browser, and not kept at an account.
	pending bool
	by      string // the mark of the person who chose it, "" when no person was signed in
}

// PendingOf reports whether a person has chosen the language in this browser and it is not kept at
// their account; of "", whether it was chosen while no person was signed in.
func (l Language) PendingOf(userID string) bool { return l.pending && l.by == personMark(userID) }

// personMark tells one person of a browser from another. A cookie that stays after a sign-out names no account.
func personMark(userID string) string {
	if userID == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("language of " + userID))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// Languages are the language of the pages in this browser, and the one that the last authorization
// request asked for; "" for none. They are not sealed: they decide nothing but the words of pages.
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

// ChooseLanguage stores in the browser what a person has chosen in it; userID is "" when no person is
// signed in.
func (m *Manager) ChooseLanguage(w http.ResponseWriter, tag, userID string) {
	http.SetCookie(w, m.cookie(m.chosen, tag+"."+personMark(userID), chosenTTL))
}

// FollowLanguage has the pages in the browser in the language of an account, "" for one without. The cookie
// then stays, empty, so that the one of the name before does not count.
func (m *Manager) FollowLanguage(w http.ResponseWriter, tag string) {
	http.SetCookie(w, m.cookie(m.chosen, tag, chosenTTL))
}

// AskLanguage remembers what an authorization request asked for until the next one; "" for
// nothing.
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
