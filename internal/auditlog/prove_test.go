package auditlog_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestProve: OB-05. A proof leads from a call to the token and consent of its grant. The verifier
// needs only the key. Changed entries cannot be proved.
func TestProve(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		sign := signer(t, db)
		for _, event := range []string{
			audit.LoginSucceeded, audit.ConsentApproved, audit.TokenIssued, audit.ToolCalled, audit.TokenRefreshed,
			audit.ToolCalled, audit.TokenRefreshed,
		} {
			w := writer(db)
			w.Add(t.Context(), event, []slog.Attr{slog.String("grant", "grt_mine"), slog.String("tool", "t")})
			w.Add(t.Context(), event, []slog.Attr{slog.String("grant", "grt_other")})
			drain(t, w)
		}
		write(t, db, 0, 600)
		calls, err := db.AuditEntries(t.Context(), storage.AuditQuery{
			Grant: "grt_mine", Event: audit.ToolCalled, Last: true, Limit: 1,
		})
		must(t, err)
		proof, err := auditlog.Prove(t.Context(), db, sign, calls[0], time.Now())
		must(t, err)
		entries, err := proof.Open(sign.Key())
		must(t, err)
		var got []string
		for _, e := range entries {
			got = append(got, e.Event+" "+e.Fields["grant"])
		}
		const want = "consent.approved grt_mine, token.refreshed grt_mine, tool.called grt_mine"
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("got %s, want %s", s, want)
		}
		forged := proof
		forged.Entries = append(forged.Entries[:0:0], proof.Entries...)
		forged.Entries[0].Leaf = strings.Replace(forged.Entries[0].Leaf, "grt_mine", "grt_else", 1)
		if _, err := forged.Open(sign.Key()); err == nil || !strings.Contains(err.Error(), "is not in the log") {
			t.Errorf("a forged entry: got %v", err)
		}
		db.exec(t, "UPDATE audit_entries SET leaf = replace(leaf, '\"tool\":\"t\"', '\"tool\":\"u\"')")
		calls, err = db.AuditEntries(t.Context(), storage.AuditQuery{From: calls[0].Index, Limit: 1})
		must(t, err)
		if _, err := auditlog.Prove(t.Context(), db, sign, calls[0], time.Now()); err == nil {
			t.Error("an entry that was changed in the database is proved")
		}
	})
}

// TestProveToken: the proof of a call contains the token that the call names, not a later one.
func TestProveToken(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		sign := signer(t, db)
		for _, entry := range [][2]string{
			{audit.ConsentApproved, ""}, {audit.TokenIssued, "first"}, {audit.TokenRefreshed, "second"},
			{audit.TokenRefreshed, "third"}, {audit.ToolCalled, "second"},
		} {
			w := writer(db)
			w.Add(t.Context(), entry[0], []slog.Attr{slog.String("grant", "grt_mine"), slog.String("jti", entry[1])})
			drain(t, w)
		}
		calls, err := db.AuditEntries(t.Context(), storage.AuditQuery{Event: audit.ToolCalled, Limit: 1})
		must(t, err)
		proof, err := auditlog.Prove(t.Context(), db, sign, calls[0], time.Now())
		must(t, err)
		entries, err := proof.Open(sign.Key())
		must(t, err)
		if len(entries) != 3 || entries[1].Fields["jti"] != "second" || proof.Removed {
			t.Errorf("OB-05: got %+v", entries)
		}
	})
}

// TestProveWhatIsRemoved: the proof of a call says if its approval was removed with old entries.
func TestProveWhatIsRemoved(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		sign, now, grant := signer(t, db), time.Now(), secrets.ID("grt_")
		add := func(event, grant string, at time.Time) {
			t.Helper()
			w := writer(db)
			w.Add(t.Context(), event, []slog.Attr{slog.Time("at", at), slog.String("grant", grant)})
			drain(t, w)
		}
		add(audit.ConsentApproved, grant, now)
		add(audit.TokenIssued, grant, now)
		add(audit.ToolCalled, grant, now.AddDate(0, 0, 30))
		add(audit.ToolCalled, "grt_of-no-time", now.AddDate(0, 0, 30))
		proved := func() verify.Proof {
			t.Helper()
			calls, err := db.AuditEntries(t.Context(), storage.AuditQuery{
				Event: audit.ToolCalled, Grant: grant, Limit: 1,
			})
			must(t, err)
			proof, err := auditlog.Prove(t.Context(), db, sign, calls[0], now.AddDate(0, 0, 30))
			must(t, err)
			return proof
		}
		if p := proved(); p.Removed || len(p.Entries) != 3 {
			t.Fatalf("OB-05: before: %+v", p)
		}
		removed, err := removing(t, db, sign, 10*24*time.Hour, now.AddDate(0, 0, 30))
		must(t, err)
		if p := proved(); removed != 2 || !p.Removed || len(p.Entries) != 1 {
			t.Errorf("OB-05: %d removed: %+v", removed, p)
		}
	})
}
