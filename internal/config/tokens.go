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

// Keys says when the signing key changes.
type Keys struct {
	RotateEvery  Duration `yaml:"rotate_every"`  // 0: never
	PublishAhead Duration `yaml:"publish_ahead"` // how long a key is published before it signs
}

// ProgramKeys says whether people may make keys for programs of theirs. They are no signing keys.
type ProgramKeys struct {
	Enabled bool     `yaml:"enabled"` // without it none is made, and none that was made is good
	MaxTTL  Duration `yaml:"max_ttl"` // of those that are made from now on
}

// Helpers says whether clients may hand less than they have to helpers.
type Helpers struct {
	Enabled bool `yaml:"enabled"`
}

func defaultProgramKeys() ProgramKeys {
	return ProgramKeys{Enabled: true, MaxTTL: Duration(authserver.DefaultProgramKeyTTL)}
}

// Policy is what the server is told.
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

// Policy is what the server is told.
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

// Policy is what the server is told.
func (k Keys) Policy() authserver.KeyPolicy {
	return authserver.KeyPolicy{RotateEvery: optional(k.RotateEvery), PublishAhead: optional(k.PublishAhead)}
}

// optional is a duration that may be none: 0 in a file, where the default is written out, and
// negative in a policy, where zero is the default.
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
