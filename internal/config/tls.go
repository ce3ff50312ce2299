package config

import (
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"

	"github.com/mcp-authd/mcp-authd/internal/acme"
)

// TLS configures the certificate: from two files, or from ACME.
type TLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	ACME ACME   `yaml:"acme"`
}

// ACME configures the names and the authority of a certificate (RFC 8555).
type ACME struct {
	Domains   []string `yaml:"domains"` // empty for no ACME
	Directory string   `yaml:"directory"`
	Email     string   `yaml:"email"`
	Roots     string   `yaml:"roots"` // a PEM file with the trusted roots for the directory
	// HTTPListen is the address that answers challenges over http and redirects other requests to
	// https; "" for none.
	HTTPListen string `yaml:"http_listen"`
	// DNS answers the challenges over DNS instead.
	DNS DNS `yaml:"dns"`
}

// DNS configures the provider of the DNS records that answer challenges (RFC 8555 §8.4).
type DNS struct {
	Provider     string   `yaml:"provider"` // "": the listeners answer challenges
	Server       string   `yaml:"server"`
	KeyName      string   `yaml:"key_name"`
	KeyAlgorithm string   `yaml:"key_algorithm"`
	Secret       Secret   `yaml:"secret"`
	SecretFile   string   `yaml:"secret_file" env:"-"`
	Name         string   `yaml:"name"`
	Resolvers    []string `yaml:"resolvers"`
}

// Configured reports whether challenges are answered over DNS.
func (d DNS) Configured() bool {
	return d.Provider != "" || d.Server != "" || d.KeyName != "" || d.KeyAlgorithm != "" || d.Secret != "" ||
		d.Name != "" || len(d.Resolvers) > 0
}

// Challenges returns the DNS provider, or nil if the listeners answer challenges.
func (d DNS) Challenges() *acme.DNS {
	if !d.Configured() {
		return nil
	}
	return &acme.DNS{
		Provider:  d.Provider,
		Server:    d.Server,
		KeyName:   d.KeyName,
		KeyAlg:    d.KeyAlgorithm,
		Secret:    string(d.Secret),
		Name:      d.Name,
		Resolvers: d.Resolvers,
	}
}

// maxDomains limits the names requested from one certificate authority.
const maxDomains = 20

// ForDomain applies --domain: it configures the server for one name. Existing settings stay.
func (l *Loaded) ForDomain(name string) {
	const origin = "--domain"
	set := func(key string, to *string, value string) {
		if l.IsDefault(key) {
			*to = value
			l.SetOrigin(key, origin)
		}
	}
	l.TLS.ACME.Domains = []string{name}
	l.SetOrigin("tls.acme.domains", origin)
	set("issuer", &l.Issuer, "https://"+name)
	set("listen", &l.Listen, ":443")
}

func (c *Config) validateTLS(add func(key, format string, args ...any)) {
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		add("tls", "set both cert and key, or neither")
	}
	a := c.TLS.ACME
	if len(a.Domains) == 0 {
		return
	}
	if c.TLS.Cert != "" {
		add("tls.acme.domains", "tls.cert is set, too: a certificate comes from files, or by ACME")
	}
	if len(a.Domains) > maxDomains {
		add("tls.acme.domains", "has more than %d names", maxDomains)
	}
	dns := a.DNS.Challenges()
	for _, name := range a.Domains {
		if problem := domainProblem(name, dns != nil); problem != "" {
			add("tls.acme.domains", "%q %s", name, problem)
		}
	}
	if dns != nil {
		dns.Check(func(key, format string, args ...any) { add("tls.acme.dns."+key, format, args...) })
	}
	u, err := url.Parse(c.Issuer)
	if err == nil && !acme.Covers(a.Domains, u.Hostname()) {
		add("tls.acme.domains", "lacks %s, the host of issuer", u.Hostname())
	}
	if d, err := url.Parse(a.Directory); err != nil || d.Scheme != "https" || d.Host == "" {
		add("tls.acme.directory", "%q is no https URL", a.Directory)
	}
	if a.HTTPListen != "" && !isAddress(a.HTTPListen) {
		add("tls.acme.http_listen", "%q is not an address such as :80", a.HTTPListen)
	}
	if a.Email != "" && (!strings.Contains(a.Email, "@") || strings.ContainsAny(a.Email, " ,;<>")) {
		add("tls.acme.email", "%q is no mail address", a.Email)
	}
}

// domainProblem returns why a name cannot have a certificate, or "".
func domainProblem(name string, overDNS bool) string {
	if overDNS {
		name = strings.TrimPrefix(name, "*.")
	}
	ascii, err := idna.Lookup.ToASCII(name)
	_, isIP := netip.ParseAddr(name)
	switch {
	case isIP == nil:
		return "is an address: certificates are got for names"
	case strings.Contains(name, "*"):
		return "has a *: name each host, or have challenges answered over DNS with tls.acme.dns, and begin with *."
	case err != nil || !strings.Contains(name, "."):
		return "is no name on the internet, such as auth.example.com"
	case ascii != name:
		return "is written as " + ascii
	}
	return ""
}
