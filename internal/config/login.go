package config

import (
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver"
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
	// AdminsSecondFactor is that of administrators, or enrolled: required as soon as one of them
	// has a passkey or an app.
	AdminsSecondFactor string `yaml:"admins_second_factor"`
	// OtherDevice lets a person sign in a browser from another device.
	OtherDevice bool     `yaml:"other_device"`
	Passkeys    Passkeys `yaml:"passkeys"`
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
		Local: true, SecondFactor: string(ways.Optional), AdminsSecondFactor: string(ways.Enrolled), OtherDevice: true,
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
	}
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
