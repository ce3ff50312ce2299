package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestACME checks that invalid names for a certificate are reported before any request for one
// (DL-01).
func TestACME(t *testing.T) {
	load := func(t *testing.T, environ ...string) *Loaded {
		t.Helper()
		l, err := Load(Source{Environ: append([]string{"HOME=" + t.TempDir()}, environ...)})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	t.Run("DL-01: --domain alone", func(t *testing.T) {
		l := load(t)
		l.ForDomain("auth.example.com")
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		if l.Issuer != "https://auth.example.com" || l.Listen != ":443" || l.TLS.ACME.HTTPListen != ":80" {
			t.Errorf("got %s, %s, %s", l.Issuer, l.Listen, l.TLS.ACME.HTTPListen)
		}
	})
	t.Run("DL-01: --domain leaves what is configured", func(t *testing.T) {
		l := load(t, "MCP_AUTHD_ISSUER=https://auth.example.com/tenant", "MCP_AUTHD_LISTEN=:8443")
		l.ForDomain("auth.example.com")
		if err := l.Validate(); err != nil || l.Issuer != "https://auth.example.com/tenant" || l.Listen != ":8443" {
			t.Errorf("got %s, %s, %v", l.Issuer, l.Listen, err)
		}
	})
	t.Run("DL-01: a wildcard over DNS", func(t *testing.T) {
		key := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(key, []byte("c2VjcmV0\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		l := load(t, "MCP_AUTHD_ISSUER=https://auth.example.com", "MCP_AUTHD_TLS_ACME_DOMAINS=*.example.com",
			"MCP_AUTHD_TLS_ACME_DNS_PROVIDER=rfc2136", "MCP_AUTHD_TLS_ACME_DNS_SERVER=ns1.example.com:53",
			"MCP_AUTHD_TLS_ACME_DNS_KEY_NAME=authd", "MCP_AUTHD_TLS_ACME_DNS_SECRET_FILE="+key)
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		if d := l.TLS.ACME.DNS.Challenges(); d == nil || d.Secret != "c2VjcmV0" {
			t.Errorf("got %+v", d)
		}
	})
	for name, c := range map[string]struct {
		domain, want string
		environ      []string
	}{
		"an address":      {"192.0.2.1", "certificates are got for names", nil},
		"a name inside":   {"auth", "is no name on the internet", nil},
		"a wildcard":      {"*.example.com", "name each host", nil},
		"capital letters": {"Auth.example.com", "is written as auth.example.com", nil},
		"a URL":           {"https://auth.example.com", "is no name on the internet", nil},
		"another issuer": {
			"auth.example.com", "lacks other.example.com",
			[]string{"MCP_AUTHD_ISSUER=https://other.example.com"},
		},
		"http": {
			"auth.example.com", "no https URL",
			[]string{"MCP_AUTHD_TLS_ACME_DIRECTORY=http://ca.example"},
		},
		"files, too": {
			"auth.example.com", "from files, or by ACME",
			[]string{"MCP_AUTHD_TLS_CERT=c", "MCP_AUTHD_TLS_KEY=k"},
		},
		"no key for records": {
			"auth.example.com", "tls.acme.dns.secret: is missing: a token of the API",
			[]string{"MCP_AUTHD_TLS_ACME_DNS_PROVIDER=cloudflare"},
		},
		"a wildcard that does not reach the issuer": {
			"*.example.com", "lacks auth.eu.example.com",
			[]string{
				"MCP_AUTHD_ISSUER=https://auth.eu.example.com", "MCP_AUTHD_TLS_ACME_DNS_PROVIDER=cloudflare",
				"MCP_AUTHD_TLS_ACME_DNS_SECRET=token",
			},
		},
		"no address": {
			"auth.example.com", "is not an address such as :80",
			[]string{"MCP_AUTHD_TLS_ACME_HTTP_LISTEN=80"},
		},
		"no mail address": {
			"auth.example.com", "is no mail address",
			[]string{"MCP_AUTHD_TLS_ACME_EMAIL=ann"},
		},
		"half of the pair": {
			"auth.example.com", "set both cert and key",
			[]string{"MCP_AUTHD_TLS_CERT=c"},
		},
	} {
		t.Run("DL-01: "+name, func(t *testing.T) {
			l := load(t, c.environ...)
			l.ForDomain(c.domain)
			if err := l.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
