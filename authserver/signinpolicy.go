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

// SignInPolicy configures the authentication methods, in addition to passwords and providers. The
// zero value is a safe default.
type SignInPolicy struct {
	// SecondFactor selects the users who need a second factor: none ("off"), those who have a
	// passkey or an authenticator app ("optional", the default), or all ("required"). A passkey
	// counts as two factors.
	SecondFactor string
	// AdminsSecondFactor is the same for users with a role: administrators, auditors, support.
	// Default: "enrolled", which is "required" as soon as one of them has a passkey or an
	// authenticator app, and SecondFactor until then.
	AdminsSecondFactor string
	// PasskeyRPID is the relying party id for passkeys: the host of the issuer (default), or a
	// parent domain.
	PasskeyRPID string
	// PreviousHosts lists hosts whose passkeys still work, with Related Origin Requests. Each must
	// serve /.well-known/webauthn like this server.
	PreviousHosts []string
	// NoOtherDevice disables signing in a browser from another device.
	NoOtherDevice bool
	// Links configures the links to create or recover an account.
	Links LinkPolicy
}

// LinkPolicy configures the lifetimes of one-time links. Zero fields take the documented defaults.
type LinkPolicy struct {
	// InviteTTL is the lifetime of an invitation link. Default: 72 hours.
	InviteTTL time.Duration
	// RecoverTTL is the lifetime of an operator's recovery link, after RecoverDelay. Default: 24
	// hours.
	RecoverTTL time.Duration
	// ResetTTL is the lifetime of a link that a user requested by mail. Default: 30 minutes.
	ResetTTL time.Duration
	// RecoverDelay is how long an operator's link is not valid yet if its user has other
	// authentication methods. The user is notified and can stop it. Default: 24 hours. Negative: no
	// delay.
	RecoverDelay time.Duration
}

// DefaultLinkPolicy returns the defaults of a zero LinkPolicy.
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
		errs = append(errs, errors.New("a second factor must be off, optional or required, or enrolled for administrators"))
	}
	return errors.Join(errs...)
}

// buildWays creates the authentication methods.
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

// providers returns the ids of the providers for sign-in.
func (c Config) providers() (ids []string) {
	if c.Delegation == nil {
		return nil
	}
	for _, p := range c.Delegation.Providers() {
		ids = append(ids, p.ID)
	}
	return ids
}

// relatedOrigins serves /.well-known/webauthn at the root of the origin: other origins that may use
// the passkeys of this host (WebAuthn §5.11, PE-02). Browsers read it without credentials.
func relatedOrigins(origins []string) http.Handler {
	body, err := json.Marshal(map[string][]string{"origins": origins})
	if err != nil {
		panic("authserver: " + err.Error()) // strings always encode
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "public, max-age=300")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(body)
	})
}
