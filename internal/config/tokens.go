package config

import (
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
)

// Tokens holds lifetimes and the signature algorithm.
type Tokens struct {
	AccessTTL      Duration `yaml:"access_ttl"`
	CodeTTL        Duration `yaml:"code_ttl"`
	RefreshIdleTTL Duration `yaml:"refresh_idle_ttl"`
	RefreshMaxTTL  Duration `yaml:"refresh_max_ttl"`
	RefreshGrace   Duration `yaml:"refresh_grace"`
	StatusTTL      Duration `yaml:"status_ttl"`
	Algorithm      string   `yaml:"algorithm"`
}

// Keys configures the rotation of the signing key.
type Keys struct {
	RotateEvery  Duration `yaml:"rotate_every"`  // 0 for never
	PublishAhead Duration `yaml:"publish_ahead"` // how long a key is published before it signs
}

// ProgramKeys says whether users may create API keys for their programs. These are not signing
// keys.
type ProgramKeys struct {
	Enabled bool     `yaml:"enabled"` // if false, no keys can be created, and existing ones are refused
	MaxTTL  Duration `yaml:"max_ttl"` // of newly created ones
}

// Helpers says whether clients may delegate part of their permissions to sub-agents.
type Helpers struct {
	Enabled bool `yaml:"enabled"`
}

func defaultProgramKeys() ProgramKeys {
	return ProgramKeys{Enabled: true, MaxTTL: Duration(authserver.DefaultProgramKeyTTL)}
}

// Policy returns the API key policy for the server.
func (k ProgramKeys) Policy() authserver.ProgramKeyPolicy {
	return authserver.ProgramKeyPolicy{Off: !k.Enabled, MaxTTL: time.Duration(k.MaxTTL)}
}

func defaultTokens() Tokens {
	p := authserver.DefaultTokenPolicy()
	return Tokens{
		AccessTTL:      Duration(p.AccessTTL),
		CodeTTL:        Duration(p.CodeTTL),
		RefreshIdleTTL: Duration(p.RefreshIdleTTL),
		RefreshMaxTTL:  Duration(p.RefreshMaxTTL),
		RefreshGrace:   Duration(p.RefreshGrace),
		StatusTTL:      Duration(p.StatusTTL),
		Algorithm:      p.Algorithm,
	}
}

func defaultKeys() Keys {
	p := authserver.DefaultKeyPolicy()
	return Keys{RotateEvery: Duration(p.RotateEvery), PublishAhead: Duration(p.PublishAhead)}
}

// Policy returns the token policy for the server.
func (t Tokens) Policy() authserver.TokenPolicy {
	return authserver.TokenPolicy{
		CodeTTL:        time.Duration(t.CodeTTL),
		AccessTTL:      time.Duration(t.AccessTTL),
		RefreshIdleTTL: time.Duration(t.RefreshIdleTTL),
		RefreshMaxTTL:  time.Duration(t.RefreshMaxTTL),
		RefreshGrace:   optional(t.RefreshGrace),
		StatusTTL:      optional(t.StatusTTL),
		Algorithm:      t.Algorithm,
	}
}

// Policy returns the signing key policy for the server.
func (k Keys) Policy() authserver.KeyPolicy {
	return authserver.KeyPolicy{RotateEvery: optional(k.RotateEvery), PublishAhead: optional(k.PublishAhead)}
}

// optional converts a duration that may be off. In a file, off is 0 and the default is explicit. In
// a policy, off is negative and 0 is the default.
func optional(d Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return time.Duration(d)
}

func (c *Config) validateTokens(add func(string, string, ...any)) {
	between := func(key string, d Duration, low, high time.Duration) { checkBetween(add, key, d, low, high) }
	day := 24 * time.Hour
	between("tokens.access_ttl", c.Tokens.AccessTTL, time.Second, day)
	between("tokens.code_ttl", c.Tokens.CodeTTL, time.Second, 10*time.Minute)
	between("tokens.refresh_idle_ttl", c.Tokens.RefreshIdleTTL, time.Second, 3650*day)
	between("tokens.refresh_max_ttl", c.Tokens.RefreshMaxTTL, time.Second, 3650*day)
	between("tokens.refresh_grace", c.Tokens.RefreshGrace, 0, 10*time.Minute)
	between("keys.rotate_every", c.Keys.RotateEvery, 0, 3650*day)
	between("keys.publish_ahead", c.Keys.PublishAhead, 0, day)
	if c.Keys.RotateEvery != 0 && c.Keys.RotateEvery <= c.Keys.PublishAhead {
		add("keys.rotate_every", "%s is not longer than keys.publish_ahead (%s)", c.Keys.RotateEvery,
			c.Keys.PublishAhead)
	}
	between("program_keys.max_ttl", c.ProgramKeys.MaxTTL, authserver.MinProgramKeyTTL, authserver.MaxProgramKeyTTL)
	between("tokens.status_ttl", c.Tokens.StatusTTL, 0, time.Hour)
	between("limits.overtime", c.Limits.Overtime, 0, day)
	between("limits.finish", c.Limits.Finish, time.Second, time.Hour)
	between("limits.drain", c.Limits.Drain, 0, time.Minute)
	between("sessions.ttl", c.Sessions.TTL, time.Minute, 365*day)
	between("attempts.keep", c.Attempts.Keep, time.Hour, 90*day)
	between("console.fresh", c.Console.Fresh, time.Minute, time.Hour)
}

func checkBetween(add func(string, string, ...any), key string, d Duration, low, high time.Duration) {
	if time.Duration(d) < low || time.Duration(d) > high {
		add(key, "%s is not between %s and %s", d, Duration(low), Duration(high))
	}
}
