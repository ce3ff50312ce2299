package config

import (
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// Login configures sign-in.
type Login struct {
	// Local enables accounts with a password. Without it there must be a provider.
	Local bool `yaml:"local"`
	// DefaultProvider is the provider that users are sent to directly. If empty, they choose.
	DefaultProvider string `yaml:"default_provider"`
	// SecondFactor is off, optional (required for users who have one) or required.
	SecondFactor string `yaml:"second_factor"`
	// AdminsSecondFactor is SecondFactor for users with a role. The default is required. With
	// enrolled, it is required once one of them has a passkey or an authenticator app.
	AdminsSecondFactor string `yaml:"admins_second_factor"`
	// OtherDevice lets users sign in a browser from another device.
	OtherDevice bool     `yaml:"other_device"`
	Links       Links    `yaml:"links"`
	Passkeys    Passkeys `yaml:"passkeys"`
}

// Links configures the lifetime of one-time links.
type Links struct {
	InviteTTL  Duration `yaml:"invite_ttl"`
	RecoverTTL Duration `yaml:"recover_ttl"`
	ResetTTL   Duration `yaml:"reset_ttl"`
	// RecoverDelay is how long a recovery link from an administrator waits if the user has other
	// authentication methods. With 0 it works at once, so the user cannot stop it in time.
	RecoverDelay Duration `yaml:"recover_delay"`
}

// Passkeys configures the host names of passkeys.
type Passkeys struct {
	// RPID is the host of the issuer, which is the default, or a parent domain.
	RPID string `yaml:"rp_id"`
	// PreviousHosts are hosts whose passkeys still work.
	PreviousHosts []string `yaml:"previous_hosts"`
}

func defaultLogin() Login {
	return Login{
		Local: true, SecondFactor: string(ways.Optional), AdminsSecondFactor: string(ways.Required), OtherDevice: true,
		Links: defaultLinks(),
	}
}

func defaultLinks() Links {
	p := authserver.DefaultLinkPolicy()
	return Links{
		InviteTTL:    Duration(p.InviteTTL),
		RecoverTTL:   Duration(p.RecoverTTL),
		ResetTTL:     Duration(p.ResetTTL),
		RecoverDelay: Duration(p.RecoverDelay),
	}
}

// Policy returns the link policy for the server and its commands.
func (l Links) Policy() authserver.LinkPolicy {
	return authserver.LinkPolicy{
		InviteTTL:    time.Duration(l.InviteTTL),
		RecoverTTL:   time.Duration(l.RecoverTTL),
		ResetTTL:     time.Duration(l.ResetTTL),
		RecoverDelay: optional(l.RecoverDelay),
	}
}

// Site returns the host names of sign-in, for passkeys. Validate has checked it.
func (c *Config) Site() (ways.Site, error) {
	return ways.NewSite(c.Issuer, c.Login.Passkeys.RPID, c.Login.Passkeys.PreviousHosts)
}

// Policy returns the sign-in policy for the server.
func (l Login) Policy() authserver.SignInPolicy {
	return authserver.SignInPolicy{
		SecondFactor:       l.SecondFactor,
		AdminsSecondFactor: l.AdminsSecondFactor,
		PasskeyRPID:        l.Passkeys.RPID,
		PreviousHosts:      l.Passkeys.PreviousHosts,
		NoOtherDevice:      !l.OtherDevice,
		Links:              l.Links.Policy(),
	}
}

// Warning returns a warning about a risky setting, or "".
func (l Links) Warning() string {
	if l.RecoverDelay != 0 {
		return ""
	}
	return "login.links.recover_delay is 0: a recovery link works at once, before its person, who has other ways " +
		"in, can stop it"
}

func (c *Config) validateLogin(add func(string, string, ...any)) {
	demand := func(key, value string, allowed ...ways.Demand) {
		if slices.Contains(allowed, ways.Demand(value)) {
			return
		}
		var names []string
		for _, a := range allowed {
			names = append(names, string(a))
		}
		add(key, "%q is not one of %s", value, strings.Join(names, ", "))
	}
	demand("login.second_factor", c.Login.SecondFactor, ways.Off, ways.Optional, ways.Required)
	demand("login.admins_second_factor", c.Login.AdminsSecondFactor, ways.Off, ways.Optional, ways.Required,
		ways.Enrolled)
	links := c.Login.Links
	checkBetween(add, "login.links.invite_ttl", links.InviteTTL, users.MinLinkTTL, users.MaxInviteTTL)
	checkBetween(add, "login.links.recover_ttl", links.RecoverTTL, users.MinLinkTTL, users.MaxRecoverTTL)
	checkBetween(add, "login.links.reset_ttl", links.ResetTTL, users.MinLinkTTL, users.MaxResetTTL)
	checkBetween(add, "login.links.recover_delay", links.RecoverDelay, 0, users.MaxRecoverDelay)
	site, err := ways.NewSite(c.Issuer, "", nil)
	if err != nil {
		return // the issuer is reported separately
	}
	if err := site.CheckRPID(c.Login.Passkeys.RPID); err != nil {
		add("login.passkeys.rp_id", "%v", err)
	}
	if err := site.CheckPrevious(c.Login.Passkeys.PreviousHosts); err != nil {
		add("login.passkeys.previous_hosts", "%v", err)
	}
}
