package auditlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func (d database) everything(t *testing.T) []storage.AuditEntry {
	t.Helper()
	all, err := d.AuditEntries(t.Context(), storage.AuditQuery{Limit: 10_000})
	must(t, err)
	return all
}

const emptied = "DELETE FROM audit_entries; DELETE FROM audit_head; DELETE FROM audit_tiles; "

// rewrite replaces all entries as an attacker could, with a consistent tree.
func (d database) rewrite(t *testing.T, more string, change func([]storage.AuditEntry) []storage.AuditEntry) {
	t.Helper()
	all := change(d.everything(t))
	d.exec(t, emptied+more)
	auditlog.Rewrite(t, d, all)
}

// forged returns an entry that no server wrote.
func forged(event string) storage.AuditEntry {
	e := verify.Entry{At: time.Now(), Event: event, Fields: map[string]string{"grant": "grt_forged", "user": "usr_1"}}
	return storage.AuditEntry{
		At: e.At.Truncate(time.Millisecond), Event: event, Grant: "grt_forged", Person: "usr_1", Leaf: e.Leaf(),
	}
}

func bare(e storage.AuditEntry) storage.AuditEntry {
	e.Leaf, _ = verify.CutMAC(e.Leaf)
	return e
}

const (
	noCheckpoints = "DELETE FROM audit_checkpoints; "
	noSeal        = "DELETE FROM settings WHERE name = 'key:" + keys.AuditSealName + "'; "
	noKey         = "DELETE FROM settings WHERE name = 'key:audit log'; "
)

// TestTampering: EN-09. An attacker changes the database, and servers restart. The signer rejects
// each change, Verify finds it without a kept checkpoint, and no changed entry passes as proven.
func TestTampering(t *testing.T) {
	change := func(at int) func([]storage.AuditEntry) []storage.AuditEntry {
		return func(all []storage.AuditEntry) []storage.AuditEntry {
			all[at].Leaf = bytes.Replace(all[at].Leaf, []byte("usr_"), []byte("usr-"), 1)
			return all
		}
	}
	cut := func(from, to int) func([]storage.AuditEntry) []storage.AuditEntry {
		return func(all []storage.AuditEntry) []storage.AuditEntry { return append(all[:from:from], all[to:]...) }
	}
	with := func(more ...storage.AuditEntry) func([]storage.AuditEntry) []storage.AuditEntry {
		return func(all []storage.AuditEntry) []storage.AuditEntry { return append(all, more...) }
	}
	for i, c := range []struct {
		name, sql string
		change    func([]storage.AuditEntry) []storage.AuditEntry
		why       string // part of the signer's error
	}{
		{"a change below a checkpoint, the tree anew, no checkpoints", noCheckpoints, change(10), "is missing"},
		{"no checkpoints at all", noCheckpoints, with(), "is missing"},
		{"the newest checkpoint is gone", "DELETE FROM audit_checkpoints WHERE size > 20; ", with(), "is missing"},
		{"entries that never were", "", with(forged(audit.ConsentApproved), forged(audit.ToolCalled)), "it has no MAC"},
		{"an entry that was, twice", "", func(all []storage.AuditEntry) []storage.AuditEntry {
			return append(all, all[5])
		}, "it is out of order"},
		{"a change of what is not signed yet", "", change(45), "its MAC does not match"},
		{"one that is not signed yet is gone", "", cut(45, 46), "it is out of order"},
		{"two that are not signed yet are exchanged", "", func(all []storage.AuditEntry) []storage.AuditEntry {
			all[45], all[46] = all[46], all[45]
			return all
		}, "it is out of order"},
		{"a MAC on another entry", "", func(all []storage.AuditEntry) []storage.AuditEntry {
			_, mac := verify.CutMAC(all[45].Leaf)
			all[45].Leaf = verify.WithMAC(bare(all[44]).Leaf, mac)
			return all
		}, "its MAC does not match"},
		{"cut off to the first checkpoint", "DELETE FROM audit_checkpoints WHERE size > 20; ", cut(20, 50), "is missing"},
		{"no seal", noSeal, with(), "its seal is missing"},
		{"no seal, no checkpoints, a change", noSeal + noCheckpoints, change(10), "neither a seal nor a checkpoint"},
		{"as if a version before had written it", noSeal + noCheckpoints,
			func(all []storage.AuditEntry) []storage.AuditEntry {
				for i := range all {
					all[i] = bare(all[i])
				}
				return all
			}, "neither a seal nor a checkpoint"},
		{"no key", noKey, with(), ""},
		{"neither key nor seal", noKey + noSeal + noCheckpoints, change(10), "neither a seal nor a checkpoint"},
	} {
		t.Run(c.name, func(t *testing.T) {
			on := onBoth
			if i%4 != 0 { // the checks hardly depend on the store, so PostgreSQL runs every fourth case
				on = func(t *testing.T, run func(*testing.T, database)) { run(t, onSQLite(t)) }
			}
			on(t, func(t *testing.T, db database) {
				write(t, db, 0, 20)
				checkpoint(t, signer(t, db))
				write(t, db, 20, 20)
				checkpoint(t, signer(t, db))
				write(t, db, 40, 10)
				db.rewrite(t, c.sql, c.change)
				_, err := signer(t, db).Checkpoint(t.Context(), time.Now()) // of a new process
				if !errors.Is(err, auditlog.ErrInconsistent) || !strings.Contains(err.Error(), c.why) {
					t.Errorf("the signer: got %v, want ErrInconsistent: ...%s", err, c.why)
				}
				sign := signer(t, db)
				if err := sign.Look(t.Context(), time.Now()); !errors.Is(err, auditlog.ErrInconsistent) {
					t.Errorf("who looks: got %v", err)
				}
				if _, err := auditlog.Verify(t.Context(), db, keyOf(sign)); err == nil ||
					errors.Is(err, auditlog.ErrUnchecked) {
					t.Errorf("Verify: got %v", err)
				}
				standing, err := sign.Standing(t.Context())
				must(t, err)
				for _, e := range db.everything(t) {
					_, mac := verify.CutMAC(e.Leaf)
					wrong := mac == "" || bytes.Contains(e.Leaf, []byte("usr-")) || e.Index >= 40
					if why := standing.Unproven(e); wrong && why == "" {
						t.Errorf("entry %d passes as proven: %s", e.Index, e.Leaf)
					}
				}
			})
		})
	}
}

// TestStanding: EN-09. Exactly the unsigned, changed and forged entries are marked.
func TestStanding(t *testing.T) {
	db := onSQLite(t)
	write(t, db, 0, 10)
	sign := signer(t, db)
	checkpoint(t, sign)
	write(t, db, 10, 2)
	db.exec(t, "UPDATE audit_entries SET leaf = replace(leaf, 'usr_', 'usr-') WHERE idx = 4")
	db.exec(t, `UPDATE audit_entries SET leaf = '{"at":"2026-01-01T00:00:00.000Z","event":"x","fields":{}}' WHERE idx = 5`)
	standing, err := sign.Standing(t.Context())
	must(t, err)
	want := map[int64]string{
		4: auditlog.UnprovenChanged, 5: auditlog.UnprovenNoMAC, 10: auditlog.UnprovenUnsigned,
		11: auditlog.UnprovenUnsigned,
	}
	for _, e := range db.everything(t) {
		if got := standing.Unproven(e); got != want[e.Index] {
			t.Errorf("entry %d: got %q, want %q", e.Index, got, want[e.Index])
		}
	}
}

// older turns the log into one by a version without MACs, with a checkpoint.
func older(t *testing.T, db database, n int) {
	t.Helper()
	write(t, db, 0, n)
	db.rewrite(t, noSeal, func(all []storage.AuditEntry) []storage.AuditEntry {
		for i := range all {
			all[i] = bare(all[i])
		}
		return all
	})
	key, err := keys.OpenAuditKey(t.Context(), db, masters, origin)
	must(t, err)
	must(t, db.PutCheckpoint(t.Context(), auditlog.SignAll(t, db, key)))
}

// TestUpgrade: EN-09. A log by a version without MACs continues, even while that version still
// writes. After a day, entries without a MAC are not signed, even if the clock is set back.
func TestUpgrade(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		older(t, db, 30)
		now := time.Now()
		write(t, db, 30, 5)
		beside := func(n int) {
			db.rewrite(t, "", func(all []storage.AuditEntry) []storage.AuditEntry {
				for range n {
					all = append(all, forged(audit.TokenIssued))
				}
				return all
			})
		}
		beside(2)
		write(t, db, 37, 5)
		c, err := signer(t, db).Checkpoint(t.Context(), now.Add(time.Hour))
		if err != nil || c.Size != 42 {
			t.Fatalf("got %d, %v", c.Size, err)
		}
		sign := signer(t, db)
		report, err := auditlog.Verify(t.Context(), db, keyOf(sign))
		if err != nil || report.Sealed != 10 || report.Confirmed != 42 {
			t.Errorf("got %+v, %v", report, err)
		}
		standing, err := sign.Standing(t.Context())
		must(t, err)
		all := db.everything(t)
		if got := standing.Unproven(all[0]); got != auditlog.UnprovenOld {
			t.Errorf("an earlier entry: got %q", got)
		}
		write(t, db, 42, 1)
		if _, err := sign.Checkpoint(t.Context(), now.Add(25*time.Hour)); err != nil {
			t.Error(err)
		}
		beside(1)
		if _, err := signer(t, db).Checkpoint(t.Context(), now); !errors.Is(err, auditlog.ErrInconsistent) {
			t.Errorf("after a day: got %v", err)
		}
	})
}

// TestUpgradeForged: EN-09. Deleting the seal does not pass a log off as one by a version without
// MACs, except for the part that such a version signed.
func TestUpgradeForged(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		older(t, db, 30)
		write(t, db, 30, 5)
		checkpoint(t, signer(t, db))
		db.rewrite(t, noSeal, func(all []storage.AuditEntry) []storage.AuditEntry {
			for i := range all {
				all[i] = bare(all[i])
			}
			return all
		})
		if _, err := signer(t, db).Checkpoint(t.Context(), time.Now()); !errors.Is(err, auditlog.ErrInconsistent) {
			t.Errorf("got %v", err)
		}
	})
}

// TestMasterKey: EN-09. The seal survives a change of the master key.
func TestMasterKey(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		write(t, db, 0, 10)
		checkpoint(t, signer(t, db))
		next := bytes.Repeat([]byte("n"), 32)
		both := [][]byte{next, masters[0]}
		m, err := keys.New(t.Context(), keys.Config{Store: db, SecretKeys: both, Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		_, err = m.Reseal(t.Context())
		must(t, err)
		sign, err := auditlog.Open(t.Context(), db, [][]byte{next}, origin, time.Now())
		must(t, err)
		w := auditlog.NewWriter(auditlog.Options{
			Store: db, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			MAC: auditlog.MACOf(db, [][]byte{next}, origin, time.Now),
		})
		add(t, w, 10, 5)
		drain(t, w)
		if c := checkpoint(t, sign); c.Size != 15 {
			t.Errorf("got %d", c.Size)
		}
		if r, err := auditlog.Verify(t.Context(), db, keyOf(sign)); err != nil || r.Sealed != 15 {
			t.Errorf("got %+v, %v", r, err)
		}
		if _, err := auditlog.Open(t.Context(), db, masters, "", time.Now()); err == nil {
			t.Error("the old master key opens it")
		}
	})
}

// TestIdleWriter: EN-09. An idle writer can continue, and a signer that has forgotten it still
// signs.
func TestIdleWriter(t *testing.T) {
	db, now := onSQLite(t), time.Now()
	clock := func() time.Time { return now }
	w := auditlog.NewWriter(auditlog.Options{
		Store: db, Now: clock, Log: slog.New(slog.DiscardHandler), MAC: macOf(db),
	})
	for i := range 5 {
		add(t, w, i, 3)
		drain(t, w)
		now = now.Add(time.Duration(i) * 59 * time.Minute)
		if _, err := signer(t, db).Checkpoint(t.Context(), now); err != nil {
			t.Fatalf("after %d: %v", i, err)
		}
	}
}

// TestCopies: EN-09. Copied entries of a writer that the signer has forgotten are not signed.
func TestCopies(t *testing.T) {
	db, now := onSQLite(t), time.Now()
	write(t, db, 0, 5)
	checkpoint(t, signer(t, db))
	old := db.everything(t)
	for _, later := range []time.Duration{4 * time.Hour, 5 * time.Hour} {
		at := now.Add(later)
		w := auditlog.NewWriter(auditlog.Options{
			Store: db, Now: func() time.Time { return at }, Log: slog.New(slog.DiscardHandler), MAC: macOf(db),
		})
		add(t, w, 5, 1)
		drain(t, w)
		_, err := signer(t, db).Checkpoint(t.Context(), at)
		must(t, err)
	}
	db.rewrite(t, "", func(all []storage.AuditEntry) []storage.AuditEntry { return append(all, old...) })
	_, err := signer(t, db).Checkpoint(t.Context(), now.Add(5*time.Hour))
	if !errors.Is(err, auditlog.ErrInconsistent) || !strings.Contains(err.Error(), "is a copy of an entry") {
		t.Errorf("got %v", err)
	}
}

// TestJoined: EN-09. Entries of the log that do not belong together are not a proof.
func TestJoined(t *testing.T) {
	db := onSQLite(t)
	w := writer(db)
	for _, e := range []struct{ event, grant, user, jti, clearance string }{
		{audit.ConsentApproved, "grt_other", "usr_2", "", ""},
		{audit.ConsentApproved, "grt_mine", "usr_1", "", ""},
		{audit.TokenIssued, "grt_mine", "usr_1", "one", ""},
		{audit.TokenIssued, "grt_mine", "usr_1", "two", ""},
		{audit.ClearanceGiven, "grt_mine", "usr_1", "", "clr_1"},
		{audit.ClearanceGiven, "grt_mine", "usr_1", "", "clr_2"},
		{audit.ToolCalled, "grt_mine", "usr_1", "one", "clr_1"},
		{audit.ToolCalled, "grt_bare", "usr_1", "one", ""},
		{audit.ToolCalled, "grt_mine", "usr_1", "one", ""},
	} {
		attrs := []slog.Attr{slog.String("grant", e.grant), slog.String("user", e.user)}
		for name, value := range map[string]string{"jti": e.jti, "clearance": e.clearance} {
			if value != "" {
				attrs = append(attrs, slog.String(name, value))
			}
		}
		w.Add(t.Context(), e.event, attrs)
	}
	drain(t, w)
	sign, all := signer(t, db), db.everything(t)
	proof, err := auditlog.Prove(t.Context(), db, sign, all[6], time.Now())
	must(t, err)
	indexes := func(p verify.Proof) (out []int64) {
		for _, e := range p.Entries {
			out = append(out, e.Index)
		}
		return out
	}
	if got := fmt.Sprint(indexes(proof)); got != "[1 2 4 6]" {
		t.Errorf("got %s", got)
	}
	unapproved, err := auditlog.Prove(t.Context(), db, sign, all[7], time.Now())
	must(t, err)
	if !unapproved.Unapproved {
		t.Errorf("a grant without an approval: got %+v", unapproved)
	}
	single := map[int64]verify.Proved{}
	for _, e := range all {
		single[e.Index] = auditlog.Included(t, db, 9, e)
	}
	for _, c := range []struct {
		why     string
		indexes []int64
	}{
		{"of another grant", []int64{0, 2, 4, 6}}, {"of another jti", []int64{1, 3, 4, 6}},
		{"of another clearance", []int64{1, 2, 5, 6}}, {"has no clearance", []int64{1, 2, 6}},
		{"has no approval", []int64{2, 4, 6}}, {"has no approval", []int64{7}}, {"shows nothing", []int64{1, 6, 8}},
	} {
		p := verify.Proof{Log: proof.Log, Checkpoint: proof.Checkpoint}
		for _, i := range c.indexes {
			p.Entries = append(p.Entries, single[i])
		}
		if _, err := p.Open(sign.Key()); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%v: got %v, want ...%s", c.indexes, err, c.why)
		}
	}
}

// TestOneChain: EN-09. A writer keeps its chain while another one appends between its batches, so
// that an entry cut off the end leaves a gap.
func TestOneChain(t *testing.T) {
	db := onSQLite(t)
	one, two := writer(db), writer(db)
	for i := range 4 {
		add(t, one, i, 2)
		drain(t, one)
		add(t, two, i, 2)
		drain(t, two)
	}
	chains := map[string]int{}
	for _, e := range db.everything(t) {
		_, mac := verify.CutMAC(e.Leaf)
		chain, _, _ := strings.Cut(mac, ".")
		chains[chain]++
	}
	if len(chains) != 2 {
		t.Errorf("got %v, want two chains", chains)
	}
}
