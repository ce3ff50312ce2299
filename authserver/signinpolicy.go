package authserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// SignInPolicy says with what people sign in, beside passwords and providers. The zero value is a
// safe default.
type SignInPolicy struct {
	// SecondFactor says of which people a second factor is required: of none ("off"), of those who have
	// a passkey or an authenticator app ("optional", the default), or of all ("required"). A passkey
	// counts as two factors.
	SecondFactor string
	// AdminsSecondFactor is the same for people with a role: administrators, auditors, support.
	// Default: "enrolled", which is "required" as soon as one of them has a passkey or an app, and
	// SecondFactor until then.
	AdminsSecondFactor string
	// PasskeyRPID is the relying party for which passkeys are made: the host of the issuer, which is
	// the default, or a domain above it.
	PasskeyRPID string
	// PreviousHosts are hosts whose passkeys still work, by Related Origin Requests; each has to
	// serve /.well-known/webauthn as this server does.
	PreviousHosts []string
	// NoOtherDevice takes away the sign-in of a browser by a person on another device.
	NoOtherDevice bool
	// Links are those by which people make an account, or get back into one.
	Links LinkPolicy
}

// LinkPolicy says how long one-time links are good. Zero fields take the defaults named here.
type LinkPolicy struct {
	// InviteTTL is how long an invitation is good: 72 hours.
	InviteTTL time.Duration
	// RecoverTTL is how long a link of the operator to get back into an account is good, once it
	// is: 24 hours.
	RecoverTTL time.Duration
	// ResetTTL is how long a link is good that a person asked for by mail: 30 minutes.
	ResetTTL time.Duration
	// RecoverDelay is how long a link of the operator waits when its person has other ways in, and is
	// told and can stop it: 24 hours. Negative: it does not wait.
	RecoverDelay time.Duration
}

// DefaultLinkPolicy is what the zero LinkPolicy means.
func DefaultLinkPolicy() LinkPolicy { return LinkPolicy(users.DefaultLinkPolicy()) }

func (p LinkPolicy) policy() users.LinkPolicy { return users.LinkPolicy(p) }

func (c Config) policy() ways.Policy {
	return ways.Policy{
		Everybody: ways.Demand(c.SignIn.SecondFactor), Admins: ways.Demand(c.SignIn.AdminsSecondFactor),
	}
}

func (c Config) site() (ways.Site, error) {
	return ways.NewSite(c.Issuer, c.SignIn.PasskeyRPID, c.SignIn.PreviousHosts)
}

func (c Config) validateSignIn() error {
	var errs []error
	if _, err := c.site(); err != nil {
		errs = append(errs, fmt.Errorf("passkeys: %w", err))
	}
	if err := c.SignIn.Links.policy().Validate(); err != nil {
		errs = append(errs, err)
	}
	all := []ways.Demand{"", ways.Off, ways.Optional, ways.Required, ways.Enrolled}
	if p := c.policy(); !slices.Contains(all[:4], p.Everybody) || !slices.Contains(all, p.Admins) {
		errs = append(errs, errors.New("a second factor is off, optional or required, or for administrators enrolled"))
	}
	return errors.Join(errs...)
}

// buildWays makes the ways in.
func (s *Server) buildWays() (err error) {
	site, err := s.cfg.site()
	if err != nil {
		return err
	}
	s.ways, err = ways.New(ways.Config{
		Store: s.cfg.Store, Ring: s.ring, Site: site, Policy: s.cfg.policy(), Guesses: s.users,
		Passwords: !s.cfg.NoLocalLogin, Providers: s.cfg.providers(),
		Now: s.cfg.Now, Audit: s.cfg.Audit, Logger: s.cfg.Logger,
	})
	return err
}

// providers are the ids of those at which people sign in.
func (c Config) providers() (ids []string) {
	if c.Delegation == nil {
		return nil
	}
	for _, p := range c.Delegation.Providers() {
		ids = append(ids, p.ID)
	}
	return ids
}

// relatedOrigins serves /.well-known/webauthn at the root of the origin: where else the passkeys of
// this host may be used (WebAuthn §5.11, PE-02). Browsers read it without credentials.
func relatedOrigins(origins []string) http.Handler {
	body, err := json.Marshal(map[string][]string{"origins": origins})
	if err != nil {
		panic("authserver: " + err.Error()) // texts always encode
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "public, max-age=300")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(body)
	})
}
