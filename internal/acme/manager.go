package acme

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// LetsEncrypt is the directory of the certificate authority that is asked by default.
const LetsEncrypt = certmagic.LetsEncryptProductionCA

// Protocol is what handshakes speak that answer a challenge (RFC 8737).
const Protocol = acmez.ACMETLS1Protocol

// Config says which certificates are got, and where.
type Config struct {
	Domains   []string
	Directory string         // of the certificate authority (RFC 8555 §7.1.1), an https URL
	Email     string         // that the authority writes to; optional
	Roots     *x509.CertPool // that the directory's own certificate is checked with; nil: those of the system
	// HTTPPort and TLSPort are those of the listeners here to which the ports 80 and 443 of the domains
	// lead. Without an HTTPPort no challenge is answered over http.
	HTTPPort, TLSPort int
	Store             Store
	Ring              *secrets.Ring
	Holder            string // names this process to the others of the store
	Now               func() time.Time
	Log               *slog.Logger
	// RenewCheck is how often it is looked whether a certificate is to be renewed. Default: 10 minutes.
	RenewCheck time.Duration
}

// Manager has the certificates of the domains, renewed when a third of their time is left.
type Manager struct {
	c      Config
	cache  *certmagic.Cache
	magic  *certmagic.Config
	issuer *certmagic.ACMEIssuer
}

// New returns a manager. It asks nobody until Run.
func New(c Config) *Manager {
	m := &Manager{c: c}
	log := newLog(c.Log)
	m.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert:   func(certmagic.Certificate) (*certmagic.Config, error) { return m.magic, nil },
		RenewCheckInterval: c.RenewCheck,
		Logger:             log,
	})
	m.magic = certmagic.New(m.cache, certmagic.Config{
		Storage: &files{store: c.Store, ring: c.Ring, now: c.Now, locked: locks{holder: c.Holder}},
		OCSP:    certmagic.OCSPConfig{DisableStapling: true}, // authorities have ended it
		OnEvent: m.event,
		Logger:  log,
		// A handshake without a name is one of a probe, or of a client that knows an address alone.
		DefaultServerName: c.Domains[0],
	})
	m.issuer = certmagic.NewACMEIssuer(m.magic, certmagic.ACMEIssuer{
		CA: c.Directory, Email: c.Email, Agreed: true, TrustedRoots: c.Roots,
		AltHTTPPort: c.HTTPPort, AltTLSALPNPort: c.TLSPort, DisableHTTPChallenge: c.HTTPPort == 0,
		Logger: log,
	})
	m.magic.Issuers = []certmagic.Issuer{m.issuer}
	return m
}

// Run gets what the store does not have, and renews it, until ctx ends (DL-01). The listeners have to be open:
// the authority comes to them.
func (m *Manager) Run(ctx context.Context) error {
	defer m.cache.Stop()
	if err := m.magic.ManageAsync(ctx, m.c.Domains); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// Certificate answers a handshake. It has no certificate for a name that is none of the domains, or until
// there is one; nor is one got because somebody asks.
func (m *Manager) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	cert, err := m.magic.GetCertificate(hello)
	if err != nil {
		return nil, errors.New("acme: there is no certificate for this name")
	}
	return cert, nil
}

// HTTP answers challenges, and sends what else comes over http to the same address over https. What
// is not GET or HEAD is refused: what it had to say has been said in clear.
func (m *Manager) HTTP() http.Handler {
	return m.issuer.HTTPChallengeHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		known := false
		for _, d := range m.c.Domains {
			known = known || d == host
		}
		switch {
		case !known:
			http.Error(w, "There is no such server here.", http.StatusMisdirectedRequest)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "Use https.", http.StatusForbidden)
		default:
			w.Header().Set("Cache-Control", "no-store")
			http.Redirect(w, r, "https://"+host+r.URL.RequestURI(), http.StatusPermanentRedirect)
		}
	}))
}

// event tells the operator how it went.
func (m *Manager) event(_ context.Context, name string, data map[string]any) error {
	domain, _ := data["identifier"].(string)
	switch name {
	case "cert_obtained":
		what := "got a certificate"
		if renewed, _ := data["renewal"].(bool); renewed {
			what = "renewed the certificate"
		}
		m.c.Log.Info(what, "domain", domain)
	case "cert_failed":
		err, _ := data["error"].(error)
		if renewal, _ := data["renewal"].(bool); renewal {
			left, _ := data["remaining"].(time.Duration)
			m.c.Log.Error("the certificate could not be renewed, and is served on; "+explain(err, m.c),
				"domain", domain, "valid_for", left.Round(time.Minute), "reason", reason(err))
			break
		}
		m.c.Log.Error("there is no certificate yet, and https does not work; "+explain(err, m.c),
			"domain", domain, "reason", reason(err))
	}
	return nil
}
