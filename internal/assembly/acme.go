package assembly

import (
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/mcp-authd/mcp-authd/internal/acme"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// ACME returns the manager of the server's certificate. It returns nil without a certificate, or
// with one from files.
func (s *Server) ACME() (*acme.Manager, error) {
	p := s.parts
	c := p.Config.TLS.ACME
	if len(c.Domains) == 0 {
		return nil, nil
	}
	ring, err := secrets.NewRing(p.Keys...)
	if err != nil {
		return nil, err
	}
	cfg := acme.Config{
		Domains: c.Domains, Directory: c.Directory, Email: c.Email,
		HTTPPort: portOf(c.HTTPListen), TLSPort: portOf(p.Config.Listen), DNS: c.DNS.Challenges(),
		Store: p.Store, Ring: ring, Holder: p.replica, Now: p.Now, Log: p.Log,
		Measure: p.measureCertificate,
	}
	if c.Roots != "" {
		pem, err := os.ReadFile(c.Roots)
		if err != nil {
			return nil, fmt.Errorf("tls.acme.roots: %w", err)
		}
		if cfg.Roots = x509.NewCertPool(); !cfg.Roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.acme.roots: %s has no certificate in PEM", c.Roots)
		}
	}
	return acme.New(cfg), nil
}

func (p Parts) measureCertificate(s acme.State) {
	p.Metrics.Certificate(s.Domain, s.NotBefore, s.NotAfter, p.Now())
	p.Metrics.CertificateFailed(s.Domain, s.Failed)
}

// portOf returns the port of a validated address, or 0.
func portOf(address string) int {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(port)
	return n
}
