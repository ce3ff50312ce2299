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

// The providers of DNS.
const (
	RFC2136    = "rfc2136"    // a name server that takes updates (RFC 2136), signed (RFC 8945)
	Cloudflare = "cloudflare" // by its API
)

// Providers are those that DNS may name.
func Providers() []string { return []string{RFC2136, Cloudflare} }

// Algorithms are those of the keys that sign updates (RFC 8945 §6), the default first.
func Algorithms() []string { return []string{"hmac-sha256", "hmac-sha384", "hmac-sha512"} }

// DNS says how challenges are answered over DNS (RFC 8555 §8.4).
type DNS struct {
	Provider string // one of Providers
	Server   string // of RFC2136: host:port of the name server to which updates go
	KeyName  string // of RFC2136
	KeyAlg   string // of RFC2136; "": the first of Algorithms
	Secret   string // of RFC2136: the key, in base64; else the token of the API
	// Name is where the record is written, and _acme-challenge of each domain leads there by a CNAME;
	// "": at _acme-challenge itself.
	Name string
	// Resolvers are name servers, as host:port, that are asked which zone a name is in, and whether the record
	// is there. None: those of the system are, and then all name servers of the zone.
	Resolvers []string
}

// Check tells add, by the names of the configuration, what cannot work.
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

// client is what writes records.
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

// recordTTL is for how long others may keep the record: no longer than until it is deleted.
const recordTTL = time.Minute

func (d DNS) solver(log *zap.Logger) acmez.Solver {
	return solver{&certmagic.DNS01Solver{DNSManager: certmagic.DNSManager{
		DNSProvider: timed{d.client()}, TTL: recordTTL, Resolvers: d.Resolvers, OverrideDomain: d.Name, Logger: log,
	}}}
}

// solver tells errors of DNS from those of the authority.
type solver struct{ *certmagic.DNS01Solver }

// Present implements acmez.Solver.
func (s solver) Present(ctx context.Context, c acme.Challenge) error {
	return ofDNS(false, s.DNS01Solver.Present(ctx, c))
}

// Wait implements acmez.Waiter.
func (s solver) Wait(ctx context.Context, c acme.Challenge) error {
	return ofDNS(true, s.DNS01Solver.Wait(ctx, c))
}

// dnsError is an error on the way to a record.
type dnsError struct {
	seen bool // it was written, and is looked for
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
