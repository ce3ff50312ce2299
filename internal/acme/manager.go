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

// LetsEncrypt is the directory URL of the default certificate authority.
const LetsEncrypt = certmagic.LetsEncryptProductionCA

// Protocol is the ALPN protocol of handshakes that answer a challenge (RFC 8737).
const Protocol = acmez.ACMETLS1Protocol

// Config configures a Manager.
type Config struct {
	Domains   []string
	Directory string         // directory URL of the authority (RFC 8555 §7.1.1), https
	Email     string         // for mail from the authority; optional
	Roots     *x509.CertPool // for the directory's own certificate; nil: the system's
	// HTTPPort and TLSPort are the local ports behind the domains' ports 80 and 443. Without
	// HTTPPort, HTTP challenges are disabled.
	HTTPPort, TLSPort int
	// DNS, if set, answers all challenges. Wildcard domains ("*.") require it.
	DNS    *DNS
	Store  Store
	Ring   *secrets.Ring
	Holder string // identifies this process
	Now    func() time.Time
	Log    *slog.Logger
	// RenewCheck is the interval of checks for renewal. Default: 10 minutes.
	RenewCheck time.Duration
	// Measure, if set, receives the state of each domain every 15 seconds, or every RenewCheck if
	// shorter.
	Measure func(State)
}

// Manager obtains the certificates of the domains and renews them when a third of their lifetime is
// left.
type Manager struct {
	c      Config
	files  *files
	cache  *certmagic.Cache
	magic  *certmagic.Config
	issuer *certmagic.ACMEIssuer

	mu     sync.Mutex        // guards failed
	failed map[string]string // advice by domain, if the last attempt here failed
}

// New returns a manager. It sends no request before Run.
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
		OCSP:    certmagic.OCSPConfig{DisableStapling: true}, // authorities no longer offer OCSP
		OnEvent: m.event,
		Logger:  log,
		// Probes, and clients that only know an address, send no server name.
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

// Run obtains and renews certificates until ctx ends (DL-01). The listeners must be open, because
// the authority connects to them.
func (m *Manager) Run(ctx context.Context) error {
	defer m.cache.Stop()
	if err := m.magic.ManageAsync(ctx, m.c.Domains); err != nil {
		return err
	}
	m.watch(ctx)
	return nil
}

// Certificate returns the certificate for a handshake, or an error if the name has none yet or is
// not one of the domains. A handshake never causes an order.
func (m *Manager) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	cert, err := m.magic.GetCertificate(hello)
	if err != nil {
		return nil, errors.New("acme: no certificate for this name")
	}
	return cert, nil
}

// HTTP answers HTTP challenges and redirects other requests for the domains to https. It rejects
// methods other than GET and HEAD: their content was already sent unencrypted.
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

// Covers reports whether domains contains host or its wildcard (RFC 9525 §6.3).
func Covers(domains []string, host string) bool {
	_, above, _ := strings.Cut(host, ".")
	return slices.Contains(domains, host) || above != "" && slices.Contains(domains, "*."+above)
}

// event logs and records the result of an attempt.
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
		if !errors.As(err, new(acme.Problem)) { // the authority would refuse others too
			m.files.pause(context.WithoutCancel(ctx), domain)
		}
		if ctx.Err() != nil {
			break // the server is stopping
		}
		advice := explain(err, domain, m.c)
		m.note(domain, advice)
		if renewal, _ := data["renewal"].(bool); renewal {
			left, _ := data["remaining"].(time.Duration)
			m.c.Log.Error("the certificate could not be renewed, and is served on; "+advice,
				"domain", domain, "valid_for", left.Round(time.Minute), "reason", reason(err))
			break
		}
		m.c.Log.Error("the first certificate is missing, so https does not work; "+advice,
			"domain", domain, "reason", reason(err))
	}
	return nil
}
