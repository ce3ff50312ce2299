package acme

import (
	"context"
	"encoding/base64"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/libdns/cloudflare"
	"github.com/libdns/rfc2136"
	"github.com/mholt/acmez/v3"
	"github.com/mholt/acmez/v3/acme"
	"go.uber.org/zap"
	"golang.org/x/net/idna"
)

// The supported DNS providers.
const (
	RFC2136    = "rfc2136"    // dynamic updates (RFC 2136), signed with TSIG (RFC 8945)
	Cloudflare = "cloudflare" // its API
)

// Providers returns the values for DNS.Provider.
func Providers() []string { return []string{RFC2136, Cloudflare} }

// Algorithms returns the TSIG algorithms (RFC 8945 §6), the default first.
func Algorithms() []string { return []string{"hmac-sha256", "hmac-sha384", "hmac-sha512"} }

// DNS configures DNS challenges (RFC 8555 §8.4).
type DNS struct {
	Provider string // one of Providers
	Server   string // RFC2136 only: host:port of the name server
	KeyName  string // RFC2136 only
	KeyAlg   string // RFC2136 only; default: the first of Algorithms
	Secret   string // RFC2136: the key in base64; else the API token
	// Name is where records are written. _acme-challenge of each domain must be a CNAME for it.
	// Default: _acme-challenge itself.
	Name string
	// Resolvers (host:port) find the zone of a name and check that the record is published.
	// Default: the system's resolvers find the zone, and all its name servers are checked.
	Resolvers []string
}

// Check calls add for each invalid setting, with its configuration key.
func (d DNS) Check(add func(key, format string, args ...any)) {
	if !slices.Contains(Providers(), d.Provider) {
		add("provider", "%q is none of: %s; for another one, see tls.acme.dns.name", d.Provider,
			strings.Join(Providers(), ", "))
		return
	}
	if d.Secret == "" {
		add("secret", "is missing: %s", map[string]string{
			RFC2136: "the key that the name server knows under key_name, in base64", Cloudflare: "a token of the API",
		}[d.Provider])
	}
	if d.Name != "" {
		if ascii, err := idna.Lookup.ToASCII(strings.ReplaceAll(d.Name, "_", "")); err != nil ||
			!strings.Contains(ascii, ".") || strings.HasSuffix(d.Name, ".") {
			add("name", "%q is no name, such as auth.acme.example.net", d.Name)
		}
	}
	for _, r := range d.Resolvers {
		if !withPort(r) {
			add("resolvers", "%q is not an address with a port, such as 192.0.2.1:53", r)
		}
	}
	if d.Provider != RFC2136 {
		for key, set := range map[string]bool{
			"server": d.Server != "", "key_name": d.KeyName != "", "key_algorithm": d.KeyAlg != "",
		} {
			if set {
				add(key, "is for the provider %s alone", RFC2136)
			}
		}
		return
	}
	if !withPort(d.Server) {
		add("server", "%q is not the address of a name server, such as ns1.example.com:53", d.Server)
	}
	if d.KeyName == "" {
		add("key_name", "is missing: the name of the key at the name server")
	}
	if d.KeyAlg != "" && !slices.Contains(Algorithms(), d.KeyAlg) {
		add("key_algorithm", "%q is none of: %s", d.KeyAlg, strings.Join(Algorithms(), ", "))
	}
	if _, err := base64.StdEncoding.DecodeString(d.Secret); err != nil {
		add("secret", "is not in base64, as keys of name servers are")
	}
}

func withPort(address string) bool {
	host, port, err := net.SplitHostPort(address)
	return err == nil && host != "" && port != ""
}

// client returns the client that writes records.
func (d DNS) client() certmagic.DNSProvider {
	if d.Provider == Cloudflare {
		return &cloudflare.Provider{
			APIToken: d.Secret,
			HTTPClient: &http.Client{
				Transport: sized{http.DefaultTransport}, Timeout: maxWait,
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			},
		}
	}
	algorithm := d.KeyAlg
	if algorithm == "" {
		algorithm = Algorithms()[0]
	}
	return &rfc2136.Provider{Server: d.Server, KeyName: d.KeyName, KeyAlg: algorithm, Key: d.Secret}
}

// recordTTL limits how long resolvers may cache a challenge record.
const recordTTL = time.Minute

func (d DNS) solver(log *zap.Logger) acmez.Solver {
	return solver{&certmagic.DNS01Solver{DNSManager: certmagic.DNSManager{
		DNSProvider: timed{d.client()}, TTL: recordTTL, Resolvers: d.Resolvers, OverrideDomain: d.Name, Logger: log,
	}}}
}

// solver marks the errors of DNS challenges with dnsError.
type solver struct{ *certmagic.DNS01Solver }

// Present implements acmez.Solver.
func (s solver) Present(ctx context.Context, c acme.Challenge) error {
	return ofDNS(false, s.DNS01Solver.Present(ctx, c))
}

// Wait implements acmez.Waiter.
func (s solver) Wait(ctx context.Context, c acme.Challenge) error {
	return ofDNS(true, s.DNS01Solver.Wait(ctx, c))
}

// dnsError is an error while a record was written or looked up.
type dnsError struct {
	seen bool // the record was written, but the lookup failed
	err  error
}

func ofDNS(seen bool, err error) error {
	if err == nil {
		return nil
	}
	return &dnsError{seen, err}
}

func (e *dnsError) Error() string { return e.err.Error() }
func (e *dnsError) Unwrap() error { return e.err }
