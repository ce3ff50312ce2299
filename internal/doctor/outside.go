package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/acme"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// server checks whether the server runs.
func (d *doctor) server(ctx context.Context) {
	c := d.in.Config
	if d.remembered {
		d.program(ctx)
		return
	}
	conn, err := (&net.Dialer{Timeout: 3 * time.Second}).DialContext(ctx, "tcp", reachable(c.Listen))
	if err != nil {
		d.skip("server", "nothing listens on %s: the server does not run here", c.Listen)
		return
	}
	conn.Close()
	d.running = true
	if c.Management.Listen == "" {
		d.ok("server", "a process listens on %s", c.Listen)
		return
	}
	switch err := installation.CheckReady(ctx, c.Management.Listen, "/readyz"); {
	case errors.Is(err, installation.ErrNotReachable):
		d.warn("server", "another process may have that address; see the log of the server",
			"a process listens on %s, and none on management.listen (%s)", c.Listen, c.Management.Listen)
	case err != nil:
		d.fail("server", "", "it runs and is not ready: %s", err)
	default:
		d.ok("server", "it runs on %s and is ready", c.Listen)
	}
}

// program checks whether a process listens at the issuer.
func (d *doctor) program(ctx context.Context) {
	at := address(d.in.Config.Issuer)
	conn, err := (&net.Dialer{Timeout: 3 * time.Second}).DialContext(ctx, "tcp", at)
	if err != nil {
		d.skip("server", "nothing listens on %s: the program does not run, or not here", at)
		return
	}
	conn.Close()
	d.running = true
	d.ok("server", "a process listens on %s", at)
}

// address returns the host and port of a URL.
func address(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return location
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// reachable converts a listening address to one for connections.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// issuer reads our own metadata as clients do, and checks that they are ours.
func (d *doctor) issuer(ctx context.Context) {
	issuer := d.in.Config.Issuer
	if u, err := url.Parse(issuer); err == nil && oauth.IsLoopbackHost(u.Hostname()) {
		d.warn("issuer", "for anything but a try-out, set issuer to the public https URL",
			"%s can be reached from this machine only", issuer)
	}
	paths := metadata.AuthorizationServerPaths(issuer)
	location := oauth.ResourceOrigin(issuer) + paths[0]
	var m struct {
		Issuer string `json:"issuer"`
		JWKS   string `json:"jwks_uri"`
	}
	resp, err := d.read(ctx, location, &m)
	switch {
	case err != nil && !d.running:
		d.skip("issuer", "the server does not run, so nothing answers at %s", issuer)
		return
	case err != nil:
		d.fail("issuer", d.adviseOnReaching(err), "clients cannot read %s: %s", location, installation.Cause(err))
		return
	case m.Issuer != issuer:
		d.fail("issuer", "let the proxy send this host to "+d.in.Config.Listen+", or correct issuer",
			"%s is answered by another issuer, %q", location, m.Issuer)
		return
	}
	d.ok("issuer", "%s answers with its metadata", location)
	d.lifetime(resp)
	d.proxied(resp)
	d.hostKept(ctx)
	d.published(ctx, m.JWKS)
}

// hostKept sends a POST like a browser that names the page's origin only in Origin. It is refused
// if a proxy has changed Host. The request changes nothing, and does not belong to a sign-in,
// because a failed sign-in would be recorded.
func (d *doctor) hostKept(ctx context.Context) {
	issuer := d.in.Config.Issuer
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, issuer+"/language", nil)
	if err != nil {
		return
	}
	req.Header.Set("Origin", oauth.ResourceOrigin(issuer))
	resp, err := d.http.Do(req)
	if err != nil {
		return // reading the metadata has reported it
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusForbidden {
		d.fail("issuer", "let the proxy keep the Host header (nginx: proxy_set_header Host $host)",
			"a proxy on the way changes the Host header: some browsers cannot sign in")
	}
}

// published compares the published keys with those in the database.
func (d *doctor) published(ctx context.Context, location string) {
	var set struct {
		Keys []struct {
			ID string `json:"kid"`
		} `json:"keys"`
	}
	if _, err := d.read(ctx, location, &set); err != nil {
		d.fail("issuer", "forward everything below the issuer's path, without caching",
			"the key set %s cannot be read: %s", location, installation.Cause(err))
		return
	}
	if len(d.kids) == 0 {
		return // not checked
	}
	for _, k := range set.Keys {
		if slices.Contains(d.kids, k.ID) {
			d.ok("issuer", "its key set is the one of this database")
			return
		}
	}
	d.fail("issuer", "see that the proxy leads here, and that database.url is the server's",
		"%s has none of the keys of this database: another installation answers, or a cache", location)
}

// read reads a JSON document without following redirects, as clients do.
func (d *doctor) read(ctx context.Context, location string, into any) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := d.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil, fmt.Errorf("it redirects to %s", resp.Header.Get("Location"))
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the answer is %s", resp.Status)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return nil, errors.New("the answer is not JSON")
	}
	return resp, nil
}

func (d *doctor) adviseOnReaching(err error) string {
	var name *net.DNSError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &name):
		return "the host of issuer has no address: make a DNS record, or correct issuer"
	case errors.As(err, &authority):
		return "the certificate is of an authority that this machine does not know; most clients will not either, and often the chain is incomplete"
	case errors.As(err, &host):
		return "the certificate is for another name: get one for the host of issuer"
	case errors.As(err, &invalid):
		return "renew the certificate"
	}
	return "let the TLS proxy send everything below the issuer's path and /.well-known/ to " + d.in.Config.Listen +
		", unchanged"
}

// lifetime checks the certificate as seen from outside.
func (d *doctor) lifetime(resp *http.Response) {
	if resp.TLS == nil || len(resp.TLS.PeerCertificates) == 0 {
		return
	}
	served := resp.TLS.PeerCertificates[0]
	t := d.in.Config.TLS
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if t.Cert == "" || err != nil || pair.Leaf.Equal(served) ||
		pair.Leaf.VerifyHostname(resp.Request.URL.Hostname()) != nil {
		d.expiry("the certificate of the issuer", d.renewal(), served)
		return
	}
	d.warn("tls",
		"the server reads tls.cert again when it changes, within seconds: see its log for why it could not, or find what else answers there",
		"the issuer is served with another certificate (until %s) than is in tls.cert (until %s)",
		served.NotAfter.Format(time.DateOnly), pair.Leaf.NotAfter.Format(time.DateOnly))
}

// proxied warns of a proxy that is not in trusted_proxies: all users behind it would count as one.
func (d *doctor) proxied(resp *http.Response) {
	c := d.in.Config
	if resp.TLS != nil && c.TLS.Cert == "" && len(c.TLS.ACME.Domains) == 0 && len(c.TrustedProxies) == 0 {
		d.warn("issuer", "set trusted_proxies to the address from which the proxy connects, such as 127.0.0.1/32",
			"a proxy terminates TLS, and trusted_proxies is empty: all people count as one address, and slow each other down when they sign in")
	}
}

// renewal returns advice for an expiring certificate.
func (d *doctor) renewal() string {
	if len(d.in.Config.TLS.ACME.Domains) > 0 {
		return "the server renews it by itself when a third of its time is left: see its log for why it could not"
	}
	return "renew it"
}

func (d *doctor) expiry(what, renewal string, c *x509.Certificate) {
	left := c.NotAfter.Sub(d.now())
	switch {
	case left <= 0:
		d.fail("tls", renewal, "%s expired on %s", what, c.NotAfter.Format(time.DateOnly))
	case d.now().Before(c.NotBefore):
		d.fail("tls", "check the clock of this machine", "%s is not valid before %s", what,
			c.NotBefore.Format(time.DateTime))
	case acme.Ends(c.NotBefore, c.NotAfter, d.now()):
		d.warn("tls", renewal, "%s expires on %s", what, c.NotAfter.Format(time.DateOnly))
	default:
		d.ok("tls", "%s is good until %s", what, c.NotAfter.Format(time.DateOnly))
	}
}

// certificate checks the certificate that the server itself serves.
func (d *doctor) certificate() {
	t := d.in.Config.TLS
	if t.Cert == "" {
		return
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		d.fail("tls", "check tls.cert and tls.key", "%s", err)
		return
	}
	d.expiry("tls.cert", d.renewal(), pair.Leaf)
	u, err := url.Parse(d.in.Config.Issuer)
	if err != nil {
		return
	}
	if err := pair.Leaf.VerifyHostname(u.Hostname()); err != nil {
		d.warn("tls", "get one for that name, unless a proxy in front has another certificate",
			"tls.cert is not for the host of issuer: %s", err)
	}
}
