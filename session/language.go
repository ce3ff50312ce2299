package session

import (
	"net/http"
	"time"
)

const (
	chosenTTL = 365 * 24 * time.Hour
	askedTTL  = time.Hour // as long as the forms of a flow are good
)

// Languages are the language that a person chose in this browser, and the one that the last
// authorization request asked for; "" for none. They are tags (BCP 47) as the browser returns them:
// not sealed, for they decide nothing but the words of pages.
func (m *Manager) Languages(r *http.Request) (chosen, asked string) {
	for _, c := range r.Cookies() {
		switch c.Name {
		case m.chosen:
			chosen = c.Value
		case m.asked:
			asked = c.Value
		}
	}
	return chosen, asked
}

// ChooseLanguage remembers what a person chose.
func (m *Manager) ChooseLanguage(w http.ResponseWriter, tag string) {
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
