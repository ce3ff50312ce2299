package session

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// PE-13: the cookie shows whose choice is not stored in an account yet, without naming the account.
func TestLanguageOfABrowser(t *testing.T) {
	m := manager(t, "https://auth.example.com", time.Now)
	read := func(set func(w http.ResponseWriter)) Language {
		w := httptest.NewRecorder()
		set(w)
		chosen, _ := m.Languages(carry(w))
		return chosen
	}
	type setter func(w http.ResponseWriter)
	chosenBy := func(userID string) setter {
		return func(w http.ResponseWriter) { m.ChooseLanguage(w, "fr", userID) }
	}
	for name, c := range map[string]struct {
		set          setter
		tag          string
		nobody, mine bool
	}{
		"no person is signed in": {chosenBy(""), "fr", true, false},
		"a person is":            {chosenBy("usr_1"), "fr", false, true},
		"another person is":      {chosenBy("usr_2"), "fr", false, false},
		"that of an account":     {func(w http.ResponseWriter) { m.FollowLanguage(w, "pt-BR") }, "pt-BR", false, false},
		"of the version before": {func(w http.ResponseWriter) {
			http.SetCookie(w, m.cookie(m.chosen, "fr", chosenTTL))
		}, "fr", false, false},
		"none": {func(http.ResponseWriter) {}, "", false, false},
	} {
		got := read(c.set)
		if got.Tag != c.tag || got.PendingOf("") != c.nobody || got.PendingOf("usr_1") != c.mine {
			t.Errorf("PE-13 %s: got %q, %v, %v", name, got.Tag, got.PendingOf(""), got.PendingOf("usr_1"))
		}
	}
	w := httptest.NewRecorder()
	m.FollowLanguage(w, "")
	r := carry(w)
	r.AddCookie(&http.Cookie{Name: m.before[m.chosen], Value: "fr"})
	if got, _ := m.Languages(r); got != (Language{}) {
		t.Errorf("PE-13 an account without one: got %v", got)
	}
}
