package flow

import (
	"testing"

	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
)

// listed is a Listing that no hint leads to.
type listed []delegation.Provider

func (l listed) Providers() []delegation.Provider { return l }
func (listed) Route(string) string                { return "" }

func TestPick(t *testing.T) {
	both := listed{{ID: "google"}, {ID: "github"}}
	for _, tt := range []struct {
		name          string
		w             SignInOptions
		asked, routed string
		want          string
	}{
		{"several ways and nothing said: people choose", SignInOptions{Password: true, At: both}, "", "", ""},
		{"the request says", SignInOptions{Password: true, At: both}, "github", "google", "github"},
		{"else what is known about the person", SignInOptions{Password: true, At: both, Default: "google"}, "",
			"github", "github"},
		{"else the default", SignInOptions{Password: true, At: both, Default: "google"}, "", "", "google"},
		{"people may ask to choose", SignInOptions{Password: true, At: both, Default: "google"}, form.AnyProvider,
			"github", ""},
		{"an unknown provider is no answer", SignInOptions{Password: true, At: both}, "evil", "nobody", ""},
		{"the only way there is", SignInOptions{At: both[:1]}, "", "", "google"},
		{"also for a person who wants to choose", SignInOptions{At: both[:1]}, form.AnyProvider, "", "google"},
		{"a password is a way too", SignInOptions{Password: true, At: both[:1]}, "", "", ""},
		{"a password is the only way", SignInOptions{Password: true}, "google", "google", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.w.pick(tt.asked, tt.routed); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
