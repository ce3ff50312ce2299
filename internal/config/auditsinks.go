package config

import (
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/auditformat"
	"github.com/mcp-authd/mcp-authd/internal/auditsink"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// AuditSink is a log destination for the entries of the audit log.
type AuditSink struct {
	ID     string `yaml:"id"`     // identifies its position in the log: never change it
	Kind   string `yaml:"kind"`   // stdout, file, syslog, webhook, otlp
	Format string `yaml:"format"` // json (default), ocsf, cef

	// For a file.
	Path     string   `yaml:"path"`
	MaxSize  int      `yaml:"max_size"` // in MiB; 0 for no limit
	MaxAge   Duration `yaml:"max_age"`  // 0 for no limit
	MaxFiles int      `yaml:"max_files"`

	// For syslog.
	Address  string `yaml:"address"` // host:port
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`

	// For a webhook and otlp.
	URL        Secret   `yaml:"url"`
	Headers    []Secret `yaml:"headers"` // "Name: value", sent with each request
	Secret     Secret   `yaml:"secret"`  // for a webhook
	SecretFile string   `yaml:"secret_file" env:"-"`
	Networks   []string `yaml:"networks"`

	// CAFile contains the certificates that authenticate the server.
	CAFile string `yaml:"ca_file"`
}

const maxSinks = 16

// AuditSinks returns the log destinations of the audit log. Validate has checked them.
func (c *Config) AuditSinks() (out []auditsink.Config) {
	for _, s := range c.Audit.Sinks {
		out = append(out, s.config())
	}
	return out
}

func (s AuditSink) config() auditsink.Config {
	out := auditsink.Config{
		ID:     s.ID,
		Kind:   auditsink.Kind(s.Kind),
		Format: s.format(),
		CAFile: s.CAFile,
		File: auditsink.Rotation{
			Path: s.Path, MaxSize: int64(s.MaxSize) << 20, Every: time.Duration(s.MaxAge), Keep: s.MaxFiles,
		},
		Peer:     auditsink.Peer{Address: s.Address, CertFile: s.CertFile, KeyFile: s.KeyFile},
		Endpoint: auditsink.Endpoint{URL: string(s.URL), Headers: header(s.Headers), Secret: string(s.Secret)},
	}
	for _, n := range s.Networks {
		if p, err := parseNetwork(n); err == nil {
			out.Endpoint.Networks = append(out.Endpoint.Networks, p)
		}
	}
	if u, err := url.Parse(string(s.URL)); err == nil {
		out.Endpoint.Local = oauth.IsLoopbackHost(u.Hostname())
	}
	return out
}

func (s AuditSink) format() auditformat.Format {
	if s.Format == "" {
		return auditformat.JSON
	}
	return auditformat.Format(s.Format)
}

// header parses lines of the form Name: value.
func header(lines []Secret) http.Header {
	h := http.Header{}
	for _, line := range lines {
		if name, value, ok := strings.Cut(string(line), ":"); ok {
			h.Add(textproto.TrimString(name), textproto.TrimString(value))
		}
	}
	return h
}

// wrongHeader reports whether a line is not of the form Name: value.
func wrongHeader(line Secret) bool {
	name, value, ok := strings.Cut(string(line), ":")
	return !ok || textproto.TrimString(name) == "" || strings.ContainsAny(name+value, "\r\n") ||
		strings.ContainsAny(textproto.TrimString(name), " \t")
}

func (c *Config) validateAuditSinks(add func(string, string, ...any)) {
	all := c.Audit.Sinks
	if n := len(all); n > maxSinks {
		add("audit.sinks", "are %d, and may be %d", n, maxSinks)
	}
	if len(all) > 0 && !c.Audit.Enabled {
		add("audit.enabled", "is false, and audit.sinks get what is in the audit log")
	}
	for i, s := range all {
		key := fmt.Sprintf("audit.sinks[%d].", i)
		same := func(t AuditSink) bool { return t.ID == s.ID }
		switch {
		case !receiverID.MatchString(s.ID):
			add(key+"id", "must be lower case letters, digits and hyphens, at most 40")
		case slices.IndexFunc(all, same) < i:
			add(key+"id", "%q is listed twice", s.ID)
		}
		s.validate(func(sub, format string, args ...any) { add(key+sub, format, args...) })
	}
}

// kindsOf maps each key to the kinds of destinations that have it.
var kindsOf = map[string][]auditsink.Kind{
	"path": {auditsink.File}, "max_size": {auditsink.File}, "max_age": {auditsink.File},
	"max_files": {auditsink.File},
	"address":   {auditsink.Syslog}, "cert_file": {auditsink.Syslog}, "key_file": {auditsink.Syslog},
	"url": {auditsink.Webhook, auditsink.OTLP}, "headers": {auditsink.Webhook, auditsink.OTLP},
	"networks": {auditsink.Webhook, auditsink.OTLP}, "secret": {auditsink.Webhook},
	"ca_file": {auditsink.Syslog, auditsink.Webhook, auditsink.OTLP},
}

// given returns the keys that are set.
func (s AuditSink) given() map[string]bool {
	return map[string]bool{
		"path": s.Path != "", "max_size": s.MaxSize != 0, "max_age": s.MaxAge != 0, "max_files": s.MaxFiles != 0,
		"address": s.Address != "", "cert_file": s.CertFile != "", "key_file": s.KeyFile != "",
		"url": s.URL != "", "headers": len(s.Headers) > 0, "networks": len(s.Networks) > 0, "secret": s.Secret != "",
		"ca_file": s.CAFile != "",
	}
}

func (s AuditSink) validate(add func(string, string, ...any)) {
	kind := auditsink.Kind(s.Kind)
	if !slices.Contains(auditsink.Kinds, kind) {
		add("kind", "%q is not one of %s", s.Kind, auditsink.Names(auditsink.Kinds))
		return
	}
	if _, err := auditformat.Parse(string(s.format())); err != nil {
		add("format", "%v", err)
	}
	for key, given := range s.given() {
		if given && !slices.Contains(kindsOf[key], kind) {
			add(key, "is of sinks of the kind %s", auditsink.Names(kindsOf[key]))
		}
	}
	switch kind {
	case auditsink.File:
		s.validateFile(add)
	case auditsink.Syslog:
		s.validateSyslog(add)
	case auditsink.Webhook, auditsink.OTLP:
		s.validateEndpoint(kind, add)
	}
}

func (s AuditSink) validateFile(add func(string, string, ...any)) {
	const day = 24 * time.Hour
	age := time.Duration(s.MaxAge)
	if !filepath.IsAbs(s.Path) {
		add("path", "is no whole path of a file, such as /var/log/mcp-authd/audit.jsonl")
	}
	if s.MaxSize < 0 || s.MaxSize > 1<<20 {
		add("max_size", "is %d, and is in MiB, up to 1048576", s.MaxSize)
	}
	if age != 0 && (age < time.Hour || age > 366*day || day%age != 0 && age%day != 0) {
		add("max_age", "%s is not 1h, 2h, 3h, 4h, 6h, 8h, 12h or a number of days up to 366d", s.MaxAge)
	}
	if s.MaxFiles < 0 {
		add("max_files", "must not be negative")
	}
}

func (s AuditSink) validateSyslog(add func(string, string, ...any)) {
	if !isAddress(s.Address) || strings.HasPrefix(s.Address, ":") {
		add("address", "%q is not an address such as logs.example.com:6514", s.Address)
	}
	if (s.CertFile == "") != (s.KeyFile == "") {
		add("cert_file", "needs key_file, and key_file needs cert_file")
	}
}

func (s AuditSink) validateEndpoint(kind auditsink.Kind, add func(string, string, ...any)) {
	u, err := url.Parse(string(s.URL))
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http":
		add("url", "it is not a URL such as https://example.com/audit") // the URL may contain a secret
	case u.Scheme == "http" && !oauth.IsLoopbackHost(u.Hostname()):
		add("url", "is http: names of people are sent over TLS only, or on this machine")
	}
	for i, h := range s.Headers {
		if wrongHeader(h) {
			add(fmt.Sprintf("headers[%d]", i), "is not of the form Name: value")
		}
	}
	for i, n := range s.Networks {
		if _, err := parseNetwork(n); err != nil {
			add(fmt.Sprintf("networks[%d]", i), "%q is not an address or network such as 10.0.0.0/8", n)
		}
	}
	if kind == auditsink.Webhook && len(s.Headers) == 0 && s.Secret == "" {
		add("secret", "is missing, and so are headers: the receiver must see who sends")
	}
	if s.Secret != "" && len(s.Secret) < minWebhookSecret {
		add("secret", "needs at least %d characters, with which the receiver checks who sends", minWebhookSecret)
	}
}
