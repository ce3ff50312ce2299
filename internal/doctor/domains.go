package doctor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/acme"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/metadata"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// maxAddresses limits how many addresses of a name are tried.
const maxAddresses = 8

// domains checks the names with certificates from ACME: whether they resolve to this machine, and
// how long their certificates are valid (DL-01).
func (d *doctor) domains(ctx context.Context) {
	for _, name := range d.in.Config.TLS.ACME.Domains {
		d.kept(ctx, name)
		if !strings.HasPrefix(name, "*.") {
			d.leads(ctx, name)
		}
	}
}

// kept checks the certificate in the database.
func (d *doctor) kept(ctx context.Context, name string) {
	if !d.current {
		return
	}
	ring, err := secrets.NewRing(d.in.Keys...)
	if err != nil {
		return // the check of the keys has reported it
	}
	leaf, err := acme.Kept(ctx, d.in.Store, ring, d.in.Config.TLS.ACME.Directory, name)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		d.warn("tls", "the server gets it by itself: see its log, where each attempt that fails says what to do",
			"there is no certificate for %s yet", name)
	case err != nil:
		d.fail("tls", "", "the certificate for %s cannot be read: %s", name, label.FirstLine(err))
	default:
		d.expiry("the certificate for "+name, d.renewal(), leaf)
	}
}

// leads checks the addresses of a name.
func (d *doctor) leads(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	found, err := d.lookup(ctx, "ip", name)
	if err != nil || len(found) == 0 {
		d.fail("name", "make an A or AAAA record for it with the address of this machine; a new one takes minutes to be known",
			"%s has no address", name)
		return
	}
	own, err := d.own()
	if err != nil {
		d.skip("name", "the addresses of this machine cannot be read: %s", err)
		return
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	found = slices.DeleteFunc(found, func(a netip.Addr) bool { return slices.ContainsFunc(own, is(a)) })
	if len(found) == 0 {
		d.ok("name", "%s leads to this machine", name)
		return
	}
	for _, address := range found[:min(len(found), maxAddresses)] {
		d.answers(ctx, name, address)
	}
}

// is returns a function that reports whether an interface has the address a.
func is(a netip.Addr) func(net.Addr) bool {
	return func(of net.Addr) bool {
		n, isNet := of.(*net.IPNet)
		if !isNet {
			return false
		}
		own, ok := netip.AddrFromSlice(n.IP)
		return ok && own.Unmap() == a.WithZone("")
	}
}

// answers checks what responds for a name at an address of another machine. A router or load
// balancer may forward it.
func (d *doctor) answers(ctx context.Context, name string, at netip.Addr) {
	const mend = "change the A or AAAA record to the address of this machine, and remove old ones, or have what has that " +
		"address pass the ports 443 and 80 on to here"
	if !d.running {
		d.warn("name", mend, "%s leads to %s, which is no address of this machine", name, at)
		return
	}
	switch here, err := d.answersHere(ctx, name, at); {
	case here:
		d.ok("name", "%s leads to %s, where this server answers", name, at)
	case err != nil:
		d.warn("name", mend+"; some routers do not let a machine reach itself by its outer address",
			"%s leads to %s, which is no address of this machine, and this server cannot be recognized there: %s", name, at,
			label.FirstLine(err))
	default:
		d.fail("name", mend, "%s leads to %s, where another server answers", name, at)
	}
}

// answersHere reads the metadata at an address. It does not verify the certificate, because it
// sends no secrets, and a valid certificate may not exist yet.
func (d *doctor) answersHere(ctx context.Context, name string, at netip.Addr) (bool, error) {
	issuer := d.in.Config.Issuer
	_, port, err := net.SplitHostPort(address(issuer))
	if err != nil {
		return false, err
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: name},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, net.JoinHostPort(at.String(), port))
		},
	}
	defer transport.CloseIdleConnections()
	location := oauth.ResourceOrigin(issuer) + metadata.AuthorizationServerPaths(issuer)[0]
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return false, err
	}
	resp, err := (&http.Client{
		Transport: d.probing(transport), Timeout: d.http.Timeout, CheckRedirect: d.http.CheckRedirect,
	}).Do(req)
	if err != nil {
		return false, fmt.Errorf("%s", installation.Cause(err))
	}
	defer resp.Body.Close()
	var m struct {
		Issuer string `json:"issuer"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&m)
	return err == nil && m.Issuer == issuer, nil
}
