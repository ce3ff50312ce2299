package config

import (
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// Login says how people sign in.
type Login struct {
	// Local offers accounts with a password. Without it there must be a provider.
	Local bool `yaml:"local"`
	// DefaultProvider is where people are sent without being asked; empty: they choose.
	DefaultProvider string `yaml:"default_provider"`
	// SecondFactor is off, optional (wanted of those who have one) or required.
	SecondFactor string `yaml:"second_factor"`
	// AdminsSecondFactor is SecondFactor for people with a role; required by default. Enrolled: required as soon
	// as one of them has a passkey or an app.
	AdminsSecondFactor string `yaml:"admins_second_factor"`
	// OtherDevice lets a person sign in a browser from another device.
	OtherDevice bool     `yaml:"other_device"`
	Links       Links    `yaml:"links"`
	Passkeys    Passkeys `yaml:"passkeys"`
}

// Links says how long one-time links are good.
type Links struct {
	InviteTTL  Duration `yaml:"invite_ttl"`
	RecoverTTL Duration `yaml:"recover_ttl"`
	ResetTTL   Duration `yaml:"reset_ttl"`
	// RecoverDelay is how long a link of the operator waits when its person has other ways in; 0: not
	// at all, so that the person cannot stop it in time.
	RecoverDelay Duration `yaml:"recover_delay"`
}

// Passkeys says for which host names passkeys are.
type Passkeys struct {
	// RPID is the host of the issuer, which is the default, or a domain above it.
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

// Policy is what the server and its commands are told.
func (l Links) Policy() authserver.LinkPolicy {
	return authserver.LinkPolicy{
		InviteTTL:    time.Duration(l.InviteTTL),
		RecoverTTL:   time.Duration(l.RecoverTTL),
		ResetTTL:     time.Duration(l.ResetTTL),
		RecoverDelay: optional(l.RecoverDelay),
	}
}

// Site is where people sign in, as far as passkeys depend on it. Validate has checked it.
func (c *Config) Site() (ways.Site, error) {
	return ways.NewSite(c.Issuer, c.Login.Passkeys.RPID, c.Login.Passkeys.PreviousHosts)
}

// Policy is what the server is told.
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

// Warning says what the operator should know of a choice that is allowed; "" when there is nothing.
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
		return // the issuer is told of elsewhere
	}
	if err := site.CheckRPID(c.Login.Passkeys.RPID); err != nil {
		add("login.passkeys.rp_id", "%v", err)
	}
	if err := site.CheckPrevious(c.Login.Passkeys.PreviousHosts); err != nil {
		add("login.passkeys.previous_hosts", "%v", err)
	}
}
