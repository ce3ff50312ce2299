package ways_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/ways"
)

func TestPE01Offered(t *testing.T) {
	for issuer, want := range map[string]struct {
		rpID   string
		reason ways.Reason
	}{
		"https://auth.example.com":      {"auth.example.com", ""},
		"https://auth.example.com:8443": {"auth.example.com", ""},
		"https://auth.example.com/path": {"auth.example.com", ""},
		"https://nas":                   {"", ways.NoDomain},
		"http://localhost:8414":         {"localhost", ""},
		"https://localhost":             {"localhost", ""},
		"http://127.0.0.1:8414":         {"", ways.NoHostName},
		"http://[::1]:8414":             {"", ways.NoHostName},
		"https://192.0.2.7":             {"", ways.NoHostName},
		"https://[2001:db8::1]":         {"", ways.NoHostName},
		"http://auth.example.com":       {"", ways.PlainHTTP},
	} {
		t.Run("PE-01 "+issuer, func(t *testing.T) {
			r := newRig(t)
			r.Ways = r.at(issuer)
			s := r.Site()
			if s.RPID != want.rpID || s.Missing != want.reason || s.Offered() != (want.reason == "") ||
				(want.reason.String() == "") != s.Offered() {
				t.Errorf("got %+v", s)
			}
			_, err := r.BeginPasskey(t.Context(), here, r.alice)
			_, ask := r.BeginSignIn(t.Context(), here, ways.Ask{Purpose: ways.SignIn})
			_, done := r.FinishPasskey(t.Context(), here, r.alice, "Phone", ways.Answer{})
			_, in := r.FinishSignIn(t.Context(), here, ways.SignIn, ways.Answer{})
			if s.Offered() {
				r.must(err)
				r.must(ask)
				return
			}
			for _, err := range []error{err, ask, done, in} {
				wantErr(t, err, ways.ErrNotOffered)
			}
		})
	}
}

func TestPE02RelyingParty(t *testing.T) {
	const at = "https://login.auth.example.co.uk"
	for rpID, want := range map[string]string{
		"":                           "",
		"login.auth.example.co.uk":   "",
		"auth.example.co.uk":         "",
		"example.co.uk":              "",
		"co.uk":                      "public suffix",
		"uk":                         "public suffix",
		"th.example.co.uk":           "nor a domain above it",
		"other.example":              "nor a domain above it",
		"https://example.co.uk":      "nor a domain above it",
		"a.login.auth.example.co.uk": "nor a domain above it",
	} {
		s, err := ways.NewSite(at, rpID, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", rpID, err, want)
		}
		if err == nil && rpID == "example.co.uk" {
			if got := s.RPIDs(); !slices.Equal(got, []string{rpID, "login.auth.example.co.uk"}) {
				t.Errorf("passkeys of the host itself work no more: %v", got)
			}
		}
	}
	for issuer, rpID := range map[string]string{
		"https://192.0.2.7": "2.7", "http://localhost:8414": "host", "https://a.github.io": "github.io",
	} {
		if _, err := ways.NewSite(issuer, rpID, nil); err == nil {
			t.Errorf("%s: %q was accepted", issuer, rpID)
		}
	}
}

func TestPE02PreviousHosts(t *testing.T) {
	for _, c := range []struct {
		hosts []string
		want  string
	}{
		{[]string{"old.example.org"}, ""},
		{[]string{"a.one.example", "b.two.example", "c.three.example", "d.four.example"}, ""},
		{[]string{"a.one.example", "b.two.example", "c.three.example", "d.four.example", "five.example"}, "5 at most"},
		{[]string{"example.de", "example.fr", "example.co.uk", "example.es", "example.it", "a.example.net"}, ""},
		{[]string{"old.example", "old.example"}, "twice"},
		{[]string{"192.0.2.7"}, "not a host name"},
		{[]string{"nas"}, "not a host name"},
		{[]string{"https://old.example"}, "not a host name"},
		{[]string{"old.example:8443"}, "not a host name"},
		{[]string{"old.example/path"}, "not a host name"},
		{[]string{"Old.example"}, "not a host name"},
		{[]string{""}, "not a host name"},
		{[]string{"a b"}, "not a host name"},
	} {
		_, err := ways.NewSite("https://auth.example.com", "", c.hosts)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: got %v, want %q", c.hosts, err, c.want)
		}
	}
	s, err := ways.NewSite("https://auth.example.com", "", nil)
	if err != nil || s.RelatedOrigins() != nil {
		t.Errorf("got %v, %v", s.RelatedOrigins(), err)
	}
}
