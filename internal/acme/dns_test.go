package acme

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/acmetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
)

// overDNS returns settings for a test name server.
func overDNS(n *acmetest.NameServer) *DNS {
	return &DNS{
		Provider:  RFC2136,
		Server:    n.Address,
		KeyName:   n.KeyName,
		Secret:    n.Secret,
		Resolvers: []string{n.Address},
	}
}

// TestDNS checks that certificates and wildcards are issued through a real name server, without
// requests to our ports (DL-01).
func TestDNS(t *testing.T) {
	t.Parallel()
	names := acmetest.StartNames(t, "dns.example.com", "_acme-challenge.cname IN CNAME challenges")
	for _, c := range []struct{ name, domain, asked, record string }{
		{"DL-01 RFC 8555 8.4: one name", "auth.dns.example.com", "auth.dns.example.com", ""},
		{"DL-01 RFC 8555 7.1.3: a wildcard", "*.dns.example.com", "any.dns.example.com", ""},
		{
			"DL-01: a record elsewhere, by a CNAME", "cname.dns.example.com", "cname.dns.example.com",
			"challenges.dns.example.com",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t, acmetest.Config{TLSPort: acmetest.Port(t, nettest.For(t)), Names: names})
			h.c.Domains, h.domain, h.c.DNS = []string{c.domain}, c.asked, overDNS(names)
			h.c.DNS.Name = c.record
			m := h.replica("one")
			h.run(m)
			h.log.until(t, "got a certificate")
			h.serve(m)
			h.until(h.authority.Issued(t), "the certificate", whichever)
			at := "_acme-challenge." + strings.TrimPrefix(c.domain, "*.")
			if left := names.Has(t, at); len(left) > 0 {
				t.Errorf("records are left at %s: %v", at, left)
			}
			if _, err := h.shown(nil); err == nil {
				t.Error("a certificate of an authority that is not known")
			}
		})
	}
}

// TestDNSFailures checks that failures are logged with advice in one line (DL-01).
func TestDNSFailures(t *testing.T) {
	t.Parallel()
	names := acmetest.StartNames(t, "dns.example.com")
	for _, c := range []struct {
		name, domain, want string
		change             func(*DNS)
	}{
		{
			"DL-01 RFC 8945 5.2: a key that the name server does not know", "auth.dns.example.com",
			"knows the key stranger and lets it change TXT records", func(d *DNS) { d.KeyName = "stranger" },
		},
		{
			"DL-01: no name server", "auth.dns.example.com", "can be reached, knows the key authd",
			func(d *DNS) { d.Server = nettest.For(t) },
		},
		{
			"DL-01: a zone of others", "auth.example.org", "lets it change TXT records of the zone", func(*DNS) {},
		},
		{
			"DL-01: no CNAME leads to the record", "auth.dns.example.com",
			"_acme-challenge.auth.dns.example.com has to lead to elsewhere.dns.example.com, by a CNAME record",
			func(d *DNS) { d.Name = "elsewhere.dns.example.com" },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t, acmetest.Config{TLSPort: acmetest.Port(t, nettest.For(t)), Names: names})
			h.c.Domains, h.c.DNS = []string{c.domain}, overDNS(names)
			c.change(h.c.DNS)
			h.run(h.replica("one"))
			h.log.until(t, c.want)
		})
	}
}

// TestDNSCheck checks that errors name the configuration key.
func TestDNSCheck(t *testing.T) {
	good := DNS{Provider: RFC2136, Server: "ns1.example.com:53", KeyName: "authd", Secret: "c2VjcmV0"}
	for _, c := range []struct {
		name, want string
		change     func(*DNS)
	}{
		{"DL-01: all is there", "", func(*DNS) {}},
		{"DL-01: a record with an underscore", "", func(d *DNS) { d.Name = "_acme-challenge.acme.example.net" }},
		{"DL-01: an unknown provider", `provider: "route53" is none of: rfc2136, cloudflare`,
			func(d *DNS) { d.Provider = "route53" }},
		{"DL-01: no key", "secret: is missing: the key that the name server knows", func(d *DNS) { d.Secret = "" }},
		{"DL-01: no token", "secret: is missing: a token of the API", func(d *DNS) { *d = DNS{Provider: Cloudflare} }},
		{"DL-01: a key in another form", "secret: is not in base64", func(d *DNS) { d.Secret = "not base64" }},
		{"DL-01: no name of the key", "key_name: is missing", func(d *DNS) { d.KeyName = "" }},
		{"DL-01: no port", `server: "ns1.example.com" is not the address`, func(d *DNS) { d.Server = "ns1.example.com" }},
		{"DL-01: a broken algorithm", `key_algorithm: "hmac-md5" is none of`, func(d *DNS) { d.KeyAlg = "hmac-md5" }},
		{"DL-01: a resolver without a port", `resolvers: "192.0.2.1" is not`,
			func(d *DNS) { d.Resolvers = []string{"192.0.2.1"} }},
		{"DL-01: a record that is no name", `name: "x" is no name`, func(d *DNS) { d.Name = "x" }},
		{"DL-01: a server for an API", "server: is for the provider rfc2136 alone",
			func(d *DNS) { *d = DNS{Provider: Cloudflare, Secret: "t", Server: "ns1.example.com:53"} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, got := good, ""
			c.change(&d)
			d.Check(func(key, format string, args ...any) { got += key + ": " + fmt.Sprintf(format, args...) + "\n" })
			if !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") > 1 || (got == "") != (c.want == "") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestOneThatCannotTry checks that a replica that cannot reach the authority does not block others,
// and serves their certificate (DL-01).
func TestOneThatCannotTry(t *testing.T) {
	t.Parallel()
	h := newHouse(t, acmetest.Config{TLSPort: acmetest.Port(t, nettest.For(t))})
	roots := h.c.Roots
	h.c.Roots = x509.NewCertPool()
	cut := h.replica("cut off")
	h.run(cut)
	h.log.until(t, "is of an authority that is not known here: name its roots in tls.acme.roots")
	h.c.Roots = roots
	h.serve(cut)
	h.run(h.replica("other"))
	h.log.until(t, "got a certificate")
	h.until(h.authority.Issued(t), "DL-01: the one that was cut off", whichever)
}

// TestTurns checks that another replica can hold a paused lock until it unlocks.
func TestTurns(t *testing.T) {
	h := newHouse(t, acmetest.Config{TLSPort: acmetest.Port(t, nettest.For(t))})
	one, other := h.replica("one").files, h.replica("other").files
	ctx, name := context.Background(), "issue_cert_"+h.domain
	if err := one.Lock(ctx, name); err != nil {
		t.Fatal(err)
	}
	if held, err := other.TryLock(ctx, name); held || err != nil {
		t.Fatalf("a lock that is held: %v, %v", held, err)
	}
	one.pause(ctx, "else.example.com")
	if held, err := other.TryLock(ctx, name); held || err != nil {
		t.Fatalf("DL-01: the pause of another domain: %v, %v", held, err)
	}
	one.pause(ctx, h.domain)
	if held, err := other.TryLock(ctx, name); !held || err != nil {
		t.Fatalf("DL-01: a lock that pauses: %v, %v", held, err)
	}
	if err := one.RenewLockLease(ctx, name, 0); !errors.Is(err, errTurn) {
		t.Errorf("DL-01: while the other tries: %v", err)
	}
	if err := other.Unlock(ctx, name); err != nil {
		t.Fatal(err)
	}
	if err := one.RenewLockLease(ctx, name, 0); err != nil {
		t.Errorf("DL-01: after it: %v", err)
	}
	if err := one.Unlock(ctx, name); err != nil {
		t.Error(err)
	}
}
