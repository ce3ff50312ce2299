package thirdparty

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/fakeupstream"
)

func TestLook(t *testing.T) {
	r := newRig(t, func(c *Config) {
		wrong := c.Connectors[0]
		wrong.ID, wrong.ClientSecret = "wrong", "not-the-secret"
		c.Connectors = append(c.Connectors, wrong)
	})
	r.reproached = true // by the wrong secret, which the test is about
	look := func(id string) Look {
		t.Helper()
		got, err := r.Probe(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	t.Run("the URIs to register, and no problem", func(t *testing.T) {
		got := look("corp")
		if got.RedirectURI != issuer+"/callback/corp" || got.LogoutURI != issuer+"/callback/corp/logout" || got.Problem != "" || got.Guide != "providers/oidc.md" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("a wrong secret is told from an outage", func(t *testing.T) {
		if got := look("wrong"); !strings.Contains(got.Problem, "refuses this client") || !strings.Contains(got.Advice, "client_secret") || strings.Contains(got.Problem, "not-the-secret") {
			t.Errorf("got %+v", got)
		}
		r.up.FailAll(fakeupstream.Down)
		if got := look("corp"); !strings.Contains(got.Problem, "cannot be reached") || !strings.Contains(got.Advice, "reaches") {
			t.Errorf("got %+v", got)
		}
		r.up.Heal()
	})
	t.Run("the difference of the clocks", func(t *testing.T) {
		r.clock.pass(-10 * time.Minute)
		if got := look("corp"); !got.ClockKnown || got.Clock < 9*time.Minute || got.Clock > 11*time.Minute {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("a connector that there is not", func(t *testing.T) {
		if _, err := r.Probe(t.Context(), "nobody"); err == nil {
			t.Error("got none")
		}
	})
}

func TestCheckOfConfiguration(t *testing.T) {
	good := Connector{ID: "google", Type: "google", ClientID: "c", ClientSecret: "s"}
	if err := Check(good); err != nil {
		t.Error(err)
	}
	bad := good
	bad.ClientID = ""
	if err := Check(bad); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "client_id: is required") {
		t.Errorf("got %v", err)
	}
}
