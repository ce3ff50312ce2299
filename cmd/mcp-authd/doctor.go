package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/metrics"
)

func newDoctorCommand(s std) *cobra.Command {
	var where settings
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Test this installation and report problems",
		Long: "Tests this installation: the configuration, the issuer as seen from outside, TLS, the clock, the\n" +
			"database, the keys, who may read the secrets, whether the resources and scopes in the configuration\n" +
			"exist, and each provider, with the redirect URI to register there. The server may be running or not.\n" +
			"The only change is one row of the database, which /readyz also writes to test whether the database\n" +
			"accepts writes. Exits with 1 when a test fails.",
		Example: "  mcp-authd doctor\n  mcp-authd doctor --config /etc/mcp-authd/config.yaml --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), 2*time.Minute)
			defer cancel()
			d := newDoctor(s)
			d.examine(ctx, where)
			return d.report(asJSON)
		},
	}
	where.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// doctor collects findings. Results that a later check needs are nil if the earlier check failed.
type doctor struct {
	std      std
	findings []admin.Finding
	http     *http.Client
	now      func() time.Time
	access   func(directory string) error // returns an error if this user cannot write there

	app     *app
	current bool     // the store is open, and its schema is current
	kids    []string // of the published keys in the database
	running bool     // a process listens on the server's address
	lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	own     func() ([]net.Addr, error) // the addresses of this machine

	remembered bool // the issuer is from the last start, and nothing else is known about that server
}

func newDoctor(s std) *doctor {
	d := &doctor{
		std:    s,
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
func (d *doctor) probing(t http.RoundTripper) probing {
	return probing{t, func() *attempt.Prober { return d.app.prober() }}
}

func (d *doctor) add(check, level, advice, what string, args ...any) {
	d.findings = append(d.findings, admin.Finding{
		Check: check, Level: level, What: fmt.Sprintf(what, args...), Advice: advice,
	})
}

func (d *doctor) ok(check, what string, args ...any) { d.add(check, "ok", "", what, args...) }

func (d *doctor) warn(check, advice, what string, args ...any) {
	d.add(check, "warning", advice, what, args...)
}

func (d *doctor) fail(check, advice, what string, args ...any) {
	d.add(check, "fail", advice, what, args...)
}

func (d *doctor) skip(check, what string, args ...any) { d.add(check, "skipped", "", what, args...) }

// examine runs all checks, from the inside out.
func (d *doctor) examine(ctx context.Context, where settings) {
	if !d.configuration(where) {
		return
	}
	d.files()
	d.programs()
	d.database(ctx)
	defer d.app.Close()
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
func (d *doctor) configuration(where settings) bool {
	l, err := config.Load(config.Source{File: where.file, Environ: d.std.environ})
	if err != nil {
		d.fail("config", "", "%s", err)
		return false
	}
	if where.data != "" {
		l.DataDir = where.data
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
	from := l.File
	if from == "" {
		from = "no file, defaults and environment"
	}
	d.ok("config", "the configuration is valid (%s)", from)
	log := slog.New(slog.DiscardHandler)
	d.app = &app{std: d.std, config: l, log: log, audit: audit.New(log), metrics: metrics.New()}
	return true
}

func (d *doctor) report(asJSON bool) error {
	if asJSON {
		if err := printJSON(d.std.out, d.findings); err != nil {
			return err
		}
	}
	failed := false
	for _, f := range d.findings {
		failed = failed || f.Level == "fail"
		if !asJSON {
			printHealthFinding(d.std, f)
		}
	}
	if failed {
		return errSilent
	}
	return nil
}

func printHealthFinding(s std, f admin.Finding) {
	mark := map[string]string{"ok": "✓", "warning": "!", "fail": "✗", "skipped": "-"}[f.Level]
	lines := strings.Split(f.What, "\n")
	fmt.Fprintf(s.out, "%s %-9s %s\n", mark, f.Check, printable(lines[0]))
	for _, line := range append(lines[1:], f.Advice) {
		if line != "" {
			fmt.Fprintf(s.out, "            %s\n", printable(line))
		}
	}
}
