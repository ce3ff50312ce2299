// Package doctor examines an installation from inside and outside, and reports problems with advice.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/installation"
)

// Report holds the findings of an examination, in the order of the checks.
type Report []admin.Finding

// Failed reports whether a check failed.
func (r Report) Failed() bool {
	return slices.ContainsFunc(r, func(f admin.Finding) bool { return f.Level == "fail" })
}

// Run examines the installation of a configuration file, or of the first one in the standard
// locations if file is empty. data, if not empty, overrides the data directory.
func Run(ctx context.Context, file, data string, h installation.Host) Report {
	d := newDoctor(h)
	d.examine(ctx, file, data)
	return d.findings
}

// doctor collects findings. Results that a later check needs are nil if the earlier check failed.
type doctor struct {
	notes
	host   installation.Host
	http   *http.Client
	now    func() time.Time
	access func(directory string) error // returns an error if this user cannot write there

	in      *installation.Installation
	current bool     // the store is open, and its schema is current
	kids    []string // of the published keys in the database
	running bool     // a process listens on the server's address
	lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	own     func() ([]net.Addr, error) // the addresses of this machine

	remembered bool // the issuer is from the last start, and nothing else is known about that server
}

func newDoctor(h installation.Host) *doctor {
	d := &doctor{
		host:   h,
		now:    time.Now,
		access: mayWrite,
		lookup: net.DefaultResolver.LookupNetIP,
		own:    net.InterfaceAddrs,
	}
	d.http = &http.Client{
		Transport:     d.probing(http.DefaultTransport),
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return d
}

// probing signs requests once the master keys are loaded.
func (d *doctor) probing(t http.RoundTripper) http.RoundTripper {
	return installation.Probing{RoundTripper: t, Prober: func() *attempt.Prober { return d.in.Prober() }}
}

// examine runs all checks, from the inside out.
func (d *doctor) examine(ctx context.Context, file, data string) {
	if !d.configuration(file, data) {
		return
	}
	d.files()
	d.programs()
	d.database(ctx)
	defer d.in.Close()
	d.passkeys(ctx)
	d.mail(ctx)
	d.resources(ctx)
	d.rules(ctx)
	d.server(ctx)
	d.issuer(ctx)
	d.certificate()
	d.domains(ctx)
	d.providers(ctx)
	d.trust(ctx)
	d.brokers(ctx)
}

// configuration loads the configuration, and reports whether the other checks can run.
func (d *doctor) configuration(file, data string) bool {
	l, err := config.Load(config.Source{File: file, Environ: d.host.Environ})
	if err != nil {
		d.fail("config", "", "%s", err)
		return false
	}
	if data != "" {
		l.DataDir = data
		l.SetOrigin("data_dir", "--data")
	}
	for _, w := range l.Warnings {
		d.warn("config", "", "%s", w)
	}
	for _, all := range l.TrustsAll() {
		d.warn("config", "name the network of your proxy alone",
			"trusted_proxies trusts every address (%s), so each client can claim to be another", all)
	}
	if err := errors.Join(l.Validate(), admin.CheckTwo(l.Console.TwoAdministrators)); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			d.fail("config", "", "%s", line)
		}
		return false
	}
	for _, hole := range admin.HolesInTwo(l.Console.TwoAdministrators) {
		d.warn("config", "list both, or neither", "%s", hole)
	}
	d.in = installation.Quiet(l, d.host)
	d.ok("config", "the configuration is valid (%s)", d.in.Source())
	return true
}

// notes collects findings.
type notes struct{ findings []admin.Finding }

func (n *notes) add(check, level, advice, what string, args ...any) {
	n.findings = append(n.findings, admin.Finding{
		Check: check, Level: level, What: fmt.Sprintf(what, args...), Advice: advice,
	})
}

func (n *notes) ok(check, what string, args ...any) { n.add(check, "ok", "", what, args...) }

func (n *notes) warn(check, advice, what string, args ...any) {
	n.add(check, "warning", advice, what, args...)
}

func (n *notes) fail(check, advice, what string, args ...any) {
	n.add(check, "fail", advice, what, args...)
}

func (n *notes) skip(check, what string, args ...any) { n.add(check, "skipped", "", what, args...) }
