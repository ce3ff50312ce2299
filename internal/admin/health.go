package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// The levels of a finding.
const (
	LevelOK      = "ok"
	LevelWarning = "warning"
	LevelFail    = "fail"
	LevelSkipped = "skipped" // could not be checked
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check" jsonschema:"subject: database, clock, growth, replicas, keys, passkeys, recovery, events, audit, tools, names, mail or resources"`
	Level  string `json:"level" jsonschema:"ok, warning, fail or skipped"`
	What   string `json:"what"`
	Advice string `json:"advice,omitempty"`
	// Resource is set for findings about the tools of an MCP server.
	Resource string `json:"resource,omitempty" jsonschema:"URL of the MCP server of the tools"`
}

// Health is the state of an installation, as seen from its database.
type Health struct {
	OK       bool      `json:"ok" jsonschema:"true if no finding has the level fail"`
	Version  string    `json:"version" jsonschema:"version of the program that made the check"`
	Issuer   string    `json:"issuer"`
	Findings []Finding `json:"findings"`
	// Replicas lists the servers of this database that run, or were lost within a day.
	Replicas []Replica `json:"replicas"`
	Schema   int       `json:"schema" jsonschema:"the last step of the schema that the database has"`
	// AuditEntries is the size of the audit log. AuditSigned is how many of the entries the newest
	// checkpoint has signed.
	AuditEntries  int64           `json:"audit_entries"`
	AuditSigned   int64           `json:"audit_signed"`
	AuditSignedAt time.Time       `json:"audit_signed_at,omitzero"`
	Sinks         []AuditSink     `json:"sinks" jsonschema:"their queues, for all replicas"`
	Receivers     []EventReceiver `json:"receivers" jsonschema:"their queues, for all replicas"`
	Keys          []Key           `json:"keys"`
}

// HealthShow checks the installation.
var HealthShow = define(Spec{
	Name: "health show", Method: "GET", Path: "/health", Roles: reading,
	Summary: "Check this installation, and show the delivery queues",
	Details: "Checks the database, the clock, the replicas, the keys, passkeys, the receivers of security events,\n" +
		"and the audit log and its destinations, and gives advice. doctor also checks the surroundings:\n" +
		"files, TLS, proxies and providers. Each replica reports its own queue for the audit log. The queues\n" +
		"of log destinations and event receivers are in the database, and are shown for all replicas.",
}, (*Service).showHealth)

// behind is how long a delivery may wait before it is reported.
const behind = 5 * time.Minute

// findings collects the results of checks.
type findings []Finding

func (f *findings) add(check, level, advice, what string, args ...any) {
	*f = append(*f, Finding{Check: check, Level: level, What: fmt.Sprintf(what, args...), Advice: advice})
}

func (s *Service) showHealth(ctx context.Context, _ None) (Health, error) {
	h := Health{Version: s.Version}
	var err error
	if h.Issuer, err = s.KnownIssuer(ctx); err != nil {
		return h, err
	}
	f := s.storeFindings(ctx)
	for _, look := range []func(context.Context) (findings, error){
		s.clockFindings, s.SizeFindings, s.PasskeyFindings, s.ReceiverFindings, s.SinkFindings, s.AuditFindings,
		s.ToolFindings, s.NameFindings, s.MailFindings, s.ScopeFindings,
	} {
		found, err := look(ctx)
		if err != nil {
			return h, err
		}
		f = append(f, found...)
	}
	if h.Replicas, h.Schema, err = s.replicas(ctx); err != nil {
		return h, err
	}
	f = append(f, s.replicaFindings(h.Replicas, h.Schema)...)
	if h.Sinks, h.Receivers, h.Keys, err = s.waiting(ctx); err != nil {
		return h, err
	}
	if !slices.ContainsFunc(h.Keys, func(k Key) bool { return k.State == string(storage.KeyActive) }) {
		f.add("keys", LevelWarning, "the next start of a server makes one", "no signing key is active")
	} else {
		f.add("keys", LevelOK, "", "signing keys are published: %d", len(h.Keys))
	}
	head, err := s.Store.AuditHead(ctx, "")
	if err != nil {
		return h, err
	}
	signed, err := s.Store.LastCheckpoint(ctx)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return h, err
	}
	h.AuditEntries, h.AuditSigned, h.AuditSignedAt = head.Size, signed.Size, signed.At
	h.Findings = f
	h.OK = !slices.ContainsFunc(f, func(f Finding) bool { return f.Level == LevelFail })
	return h, nil
}

// waiting returns the log destinations, the event receivers and the signing keys.
func (s *Service) waiting(ctx context.Context) ([]AuditSink, []EventReceiver, []Key, error) {
	sinks, err := s.auditSinks(ctx, None{})
	if err != nil {
		return nil, nil, nil, err
	}
	receivers, err := s.listReceivers(ctx, None{})
	if err != nil {
		return nil, nil, nil, err
	}
	published, err := s.listKeys(ctx, None{})
	return sinks.Items, receivers.Items, published.Items, err
}

func (s *Service) storeFindings(ctx context.Context) (f findings) {
	if err := s.Store.Ready(ctx); err != nil {
		f.add("database", LevelFail, "mcp-authd migrate status says more", "its schema is not that of this version")
		return f
	}
	if err := s.Store.Writable(ctx); err != nil {
		f.add("database", LevelFail, "make room on its disk, and see that the server's user may write there; "+
			"with PostgreSQL, connect to the primary", "it can be read, and not written")
		return f
	}
	f.add("database", LevelOK, "", "it can be read and written, and its schema is that of this version")
	return f
}

// tellSkew is how far clocks may differ before the difference is reported.
const tellSkew = 5 * time.Second

func (s *Service) clockFindings(context.Context) (f findings, _ error) {
	if skew := s.Store.Skew().Abs().Round(time.Millisecond); skew > tellSkew {
		f.add("clock", LevelWarning, "keep both machines right by NTP (timedatectl, chronyc tracking)",
			"the clock of this machine and that of the database differ by %s; servers go by the database's", skew)
	} else {
		f.add("clock", LevelOK, "", "the clock of this machine is that of the database")
	}
	return f, nil
}

// PasskeyFindings reports whether passkeys are offered, and who cannot use theirs with the
// configured host name (PE-01, PE-02).
func (s *Service) PasskeyFindings(ctx context.Context) (f findings, _ error) {
	site, err := s.Config.Site()
	if err != nil {
		f.add("passkeys", LevelFail, "", "%s", err)
		return f, nil
	}
	if site.Offered() {
		f.add("passkeys", LevelOK, "", "offered, for %s", site.RPID)
	} else {
		f.add("passkeys", LevelSkipped, "to offer them, give the server a host name and TLS", "not offered: %s", site.Missing)
	}
	if what := s.Config.Login.Links.Warning(); what != "" {
		f.add("recovery", LevelWarning, "leave it at a day, or at what it takes your people to read their mail", "%s", what)
	}
	if s.Store == nil {
		return f, nil
	}
	hosts, err := s.Store.PasskeyHosts(ctx,
		storage.Admission{Passwords: s.Config.Login.Local, Providers: s.Config.ProviderIDs()})
	if err != nil {
		return f, fmt.Errorf("passkeys cannot be counted: %w", err)
	}
	for _, h := range hosts {
		if slices.Contains(site.RPIDs(), h.RPID) {
			f.add("passkeys", LevelOK, "",
				"%s made for %s; another host name loses them, unless login.passkeys.previous_hosts has this one%s",
				label.Count(h.Passkeys, "passkey is", "passkeys are"), h.RPID, only(h.Only))
			continue
		}
		f.add("passkeys", LevelWarning,
			"add the host to login.passkeys.previous_hosts, and let it serve /.well-known/webauthn as this server does",
			"%s of %s made for %s, which is not served: they let no one in%s", label.Count(h.Passkeys, "passkey", "passkeys"),
			label.Count(h.People, "person is", "people are"), h.RPID, only(h.Only))
	}
	return f, nil
}

// only returns text that says how many users would be locked out.
func only(n int) string {
	if n == 0 {
		return ""
	}
	return "; " + label.Count(n, "person has", "people have") + " no other way in"
}

// ReceiverFindings reports whether receivers of security events accept them.
func (s *Service) ReceiverFindings(ctx context.Context) (f findings, _ error) {
	configured := s.Config.Events.Receivers
	if len(configured) == 0 {
		return nil, nil
	}
	waiting, err := s.Store.Backlogs(ctx, s.Now())
	if err != nil {
		return nil, fmt.Errorf("cannot read the queue of security events: %w", err)
	}
	for _, b := range waiting {
		if !b.Oldest.IsZero() && s.Now().Sub(b.Oldest) > behind {
			f.add("events", LevelWarning, "see: mcp-authd events list",
				"%s for receiver %s, the oldest since %s: %s",
				label.Count(b.Waiting, "security event waits", "security events wait"), b.Receiver,
				b.Oldest.Format(time.RFC3339), b.Failed)
		}
	}
	if len(f) == 0 {
		f.add("events", LevelOK, "", "%s what they were told",
			label.Count(len(configured), "receiver of security events has", "receivers of security events have"))
	}
	return f, nil
}

// SinkFindings reports whether log destinations receive the entries of the audit log.
func (s *Service) SinkFindings(ctx context.Context) (f findings, _ error) {
	sinks, err := s.auditSinks(ctx, None{})
	if err != nil {
		return nil, fmt.Errorf("cannot read the queue of audit destinations: %w", err)
	}
	if len(sinks.Items) == 0 {
		return nil, nil
	}
	for _, k := range sinks.Items {
		if !k.Opened {
			f.add("audit", LevelWarning, "start the server again: it reads the configuration once",
				"no server delivers to sink %s yet", k.ID)
			continue
		}
		if k.Failed != "" || !k.Oldest.IsZero() && s.Now().Sub(k.Oldest) > behind {
			since, why := s.Now(), k.Failed
			if !k.Oldest.IsZero() {
				since = k.Oldest
			}
			if why == "" {
				why = "no server delivers to it"
			}
			f.add("audit", LevelWarning, "they wait in the audit log until they are removed by their age",
				"%s for sink %s, the oldest since %s: %s",
				label.Count(k.Waiting, "entry waits", "entries wait"), k.ID, since.UTC().Format(time.RFC3339), why)
		}
		if k.Lost > 0 {
			f.add("audit", LevelWarning, "write what is missing with: mcp-authd audit export",
				"sink %s never got %s removed, or cannot be read", k.ID,
				label.Count(k.Lost, "entry: it was", "entries: they were"))
		}
	}
	if len(f) == 0 {
		f.add("audit", LevelOK, "", "%s what is in it",
			label.Count(len(sinks.Items), "sink of the audit log gets", "sinks of the audit log get"))
	}
	return f, nil
}
