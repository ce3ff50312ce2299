package acme

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3"
	"github.com/mholt/acmez/v3/acme"

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
	// DNS answers the challenges in place of the listeners, and only then may a domain begin with "*.". Optional.
	DNS    *DNS
	Store  Store
	Ring   *secrets.Ring
	Holder string // names this process to the others of the store
	Now    func() time.Time
	Log    *slog.Logger
	// RenewCheck is how often it is looked whether a certificate is to be renewed. Default: 10 minutes.
	RenewCheck time.Duration
	// Measure is told every quarter of a minute how it stands with each domain. Optional.
	Measure func(State)
}

// Manager has the certificates of the domains, renewed when a third of their time is left.
type Manager struct {
	c      Config
	files  *files
	cache  *certmagic.Cache
	magic  *certmagic.Config
	issuer *certmagic.ACMEIssuer

	mu     sync.Mutex        // guards failed
	failed map[string]string // domains whose last attempt failed here, with what to do
}

// New returns a manager. It asks nobody until Run.
func New(c Config) *Manager {
	m := &Manager{c: c, failed: make(map[string]string)}
	m.files = &files{store: c.Store, ring: c.Ring, now: c.Now, locked: locks{holder: c.Holder}}
	log := newLog(c.Log)
	m.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert:   func(certmagic.Certificate) (*certmagic.Config, error) { return m.magic, nil },
		RenewCheckInterval: c.RenewCheck,
		Logger:             log,
	})
	m.magic = certmagic.New(m.cache, certmagic.Config{
		Storage: m.files,
		OCSP:    certmagic.OCSPConfig{DisableStapling: true}, // authorities have ended it
		OnEvent: m.event,
		Logger:  log,
		// A handshake without a name is one of a probe, or of a client that knows an address alone.
		DefaultServerName: c.Domains[0],
	})
	options := certmagic.ACMEIssuer{
		CA: c.Directory, Email: c.Email, Agreed: true, TrustedRoots: c.Roots,
		AltHTTPPort: c.HTTPPort, AltTLSALPNPort: c.TLSPort, DisableHTTPChallenge: c.HTTPPort == 0,
		Logger: log,
	}
	if c.DNS != nil {
		options.DNS01Solver = c.DNS.solver(log)
	}
	m.issuer = certmagic.NewACMEIssuer(m.magic, options)
	bound(m.issuer)
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
	m.watch(ctx)
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
		switch {
		case !Covers(m.c.Domains, host):
			http.Error(w, "There is no such server here.", http.StatusMisdirectedRequest)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "Use https.", http.StatusForbidden)
		default:
			w.Header().Set("Cache-Control", "no-store")
			http.Redirect(w, r, "https://"+host+r.URL.RequestURI(), http.StatusPermanentRedirect)
		}
	}))
}

// Covers reports whether one of the domains is the host, or stands for it with a "*" (RFC 9525 §6.3).
func Covers(domains []string, host string) bool {
	_, above, _ := strings.Cut(host, ".")
	return slices.Contains(domains, host) || above != "" && slices.Contains(domains, "*."+above)
}

// event tells the operator how it went.
func (m *Manager) event(ctx context.Context, name string, data map[string]any) error {
	domain, _ := data["identifier"].(string)
	switch name {
	case "cert_obtained":
		m.note(domain, "")
		what := "got a certificate"
		if renewed, _ := data["renewal"].(bool); renewed {
			what = "renewed the certificate"
		}
		m.c.Log.Info(what, "domain", domain)
	case "cert_failed":
		err, _ := data["error"].(error)
		if !errors.As(err, new(acme.Problem)) { // what the authority refuses here, it refuses to all
			m.files.pause(context.WithoutCancel(ctx), domain)
		}
		if ctx.Err() != nil {
			break // the server stops
		}
		advice := explain(err, domain, m.c)
		m.note(domain, advice)
		if renewal, _ := data["renewal"].(bool); renewal {
			left, _ := data["remaining"].(time.Duration)
			m.c.Log.Error("the certificate could not be renewed, and is served on; "+advice,
				"domain", domain, "valid_for", left.Round(time.Minute), "reason", reason(err))
			break
		}
		m.c.Log.Error("there is no certificate yet, and https does not work; "+advice,
			"domain", domain, "reason", reason(err))
	}
	return nil
}
