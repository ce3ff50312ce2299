package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/auditformat"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/storage"
)

func newAuditCommand(s std) *cobra.Command {
	return group("audit", "Read, check and export the audit log", newAuditList(s), newAuditShow(s),
		newAuditProve(s), newAuditVerify(s), newAuditCheckpoint(s), newAuditExport(s), newAuditSinks(s))
}

// viewAudited is an entry as it is printed.
func viewAudited(e storage.AuditEntry) (auditformat.View, error) {
	entry, err := auditformat.Read(e.Index, e.Leaf)
	return auditformat.ViewOf(entry), err
}

// auditFilter is what audit list is asked for.
type auditFilter struct {
	person, grant, event, since, until string
	limit                              int
	asJSON                             bool
}

func (f *auditFilter) add(c *cobra.Command) {
	c.Flags().StringVar(&f.person, "person", "", "of a person: name or id of the account, also one that was deleted")
	c.Flags().StringVar(&f.grant, "grant", "", "of a grant, by its whole id")
	c.Flags().StringVar(&f.event, "event", "", "of one kind, such as consent.approved")
	c.Flags().StringVar(&f.since, "since", "", "from a time on, such as 2026-03-01T12:00:00Z, or how long ago, as 15m")
	c.Flags().StringVar(&f.until, "until", "", "before a time, or how long ago")
	c.Flags().IntVar(&f.limit, "limit", 100, "how many entries, the last ones; 0: all of them")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
}

// query is the filter as the store takes it.
func (f *auditFilter) query(ctx context.Context, a *app) (q storage.AuditQuery, err error) {
	if f.limit < 0 {
		return q, errors.New("--limit must not be negative")
	}
	q = storage.AuditQuery{Grant: f.grant, Event: f.event, Last: f.limit > 0}
	if f.person != "" {
		q.Person = f.person
		if u, err := a.person(ctx, f.person); err == nil {
			q.Person = u.ID
		}
	}
	if f.since != "" {
		if q.Since, err = parseMoment("--since", f.since); err != nil {
			return q, err
		}
	}
	if f.until != "" {
		if q.Until, err = parseMoment("--until", f.until); err != nil {
			return q, err
		}
	}
	return q, nil
}

// entries reads them a page at a time; with a limit, the last ones.
func (f *auditFilter) entries(
	ctx context.Context, a *app, q storage.AuditQuery,
) (out []storage.AuditEntry, err error) {
	for f.limit == 0 || len(out) < f.limit {
		q.Limit = pageSize
		if f.limit > 0 {
			q.Limit = min(pageSize, f.limit-len(out))
		}
		some, err := a.store.AuditEntries(ctx, q)
		if err != nil {
			return nil, err
		}
		if f.limit > 0 {
			out = append(some, out...)
		} else {
			out = append(out, some...)
		}
		if len(some) < q.Limit || q.Last && some[0].Index == 0 {
			break
		}
		if q.Last {
			q.Below = some[0].Index
		} else {
			q.From = some[len(some)-1].Index + 1
		}
	}
	return out, nil
}

func newAuditList(s std) *cobra.Command {
	var f auditFilter
	return storeCommand(s, &cobra.Command{
		Use: "list", Short: "List entries of the audit log", Args: cobra.NoArgs,
		Long: "Lists entries of the audit log, the last one at the end: sign-ins, what people allowed, tokens, cuts,\n" +
			"administration. Each has its index, by which audit show finds it.",
		Example: "  mcp-authd audit list --person alice --since 24h\n" +
			"  mcp-authd audit list --event consent.approved --limit 0 --json",
	}, f.add, func(c *cobra.Command, a *app, _ []string) error {
		q, err := f.query(c.Context(), a)
		if err != nil {
			return err
		}
		found, err := f.entries(c.Context(), a, q)
		if err != nil {
			return err
		}
		views := make([]auditformat.View, len(found))
		for i, e := range found {
			if views[i], err = viewAudited(e); err != nil {
				return err
			}
		}
		if f.asJSON {
			return printJSON(s.out, views)
		}
		if len(views) == 0 {
			_, err = fmt.Fprintln(s.out, "no such entries")
			return err
		}
		t := newTable(s.out, "INDEX", "AT", "EVENT", "PERSON", "CLIENT", "RESOURCE", "GRANT")
		for _, v := range views {
			person := v.Person
			if name := v.Fields["user_name"]; name != "" {
				person = name
			}
			client := v.ClientID
			if name := v.Fields["client_name"]; name != "" {
				client = name
			}
			t.row(strconv.FormatInt(v.Index, 10), moment(v.At), v.Event, person, client, v.Resource, v.Grant)
		}
		return t.flush()
	})
}

// auditEntry is the entry of an index.
func (a *app) auditEntry(ctx context.Context, text string) (storage.AuditEntry, error) {
	index, err := strconv.ParseInt(text, 10, 64)
	if err != nil || index < 0 {
		return storage.AuditEntry{}, fmt.Errorf("%q is not an index, see: mcp-authd audit list", text)
	}
	head, err := a.store.AuditHead(ctx, "")
	if err != nil {
		return storage.AuditEntry{}, err
	}
	found, err := a.store.AuditEntries(ctx, storage.AuditQuery{From: index, Below: index + 1, Limit: 1})
	switch {
	case err != nil:
		return storage.AuditEntry{}, err
	case len(found) == 1:
		return found[0], nil
	case index < head.First:
		return storage.AuditEntry{}, fmt.Errorf("entry %d is older than audit.keep and was removed", index)
	case index < head.Size:
		return storage.AuditEntry{}, fmt.Errorf("entry %d is missing, run: mcp-authd audit verify", index)
	}
	return storage.AuditEntry{}, fmt.Errorf("there is no entry %d: the log has %d, from 0 on", index, head.Size)
}

func newAuditShow(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "show INDEX", Short: "Show an entry of the audit log", Args: cobra.ExactArgs(1),
		Long:    "Shows an entry with all that it says. Its leaf is the hash that the log is made of.",
		Example: "  mcp-authd audit show 4711",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, args []string) error {
			e, err := a.auditEntry(c.Context(), args[0])
			if err != nil {
				return err
			}
			v, err := viewAudited(e)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, v)
			}
			printFields(s.out, "index", strconv.FormatInt(v.Index, 10), "at", v.At.Format(exactTime), "event", v.Event)
			for _, name := range slices.Sorted(maps.Keys(v.Fields)) {
				printFields(s.out, name, v.Fields[name])
			}
			printFields(s.out, "leaf", v.Leaf.String())
			return nil
		})
}

func newAuditProve(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "prove INDEX", Short: "Prove what allowed a call of a tool", Args: cobra.ExactArgs(1),
		Long: "Walks from an entry of the audit log, such as tool.called, by its grant to the token and to what the\n" +
			"person allowed, and proves that each is in the log that a checkpoint has signed. With --json the proof is\n" +
			"one document, which examples/auditverify checks with the key of the log alone.",
		Example: "  mcp-authd audit prove 4711\n  mcp-authd audit prove 4711 --json >proof.json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print the proof as JSON") },
		func(c *cobra.Command, a *app, args []string) error {
			e, err := a.auditEntry(c.Context(), args[0])
			if err != nil {
				return err
			}
			signer, err := a.parts().AuditSigner(c.Context())
			if err != nil {
				return err
			}
			proof, err := auditlog.Prove(c.Context(), a.store, signer, e, a.parts().Now())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, proof)
			}
			entries, err := proof.Open(signer.Key())
			if err != nil {
				return err
			}
			t := newTable(s.out, "INDEX", "AT", "EVENT", "PERSON", "CLIENT", "TOOL", "SCOPE")
			for i, e := range entries {
				t.row(strconv.FormatInt(proof.Entries[i].Index, 10), moment(e.At), e.Event, e.Fields["user"],
					e.Fields["client_id"], e.Fields["tool"], e.Fields["scope"])
			}
			return t.flush()
		})
}

// auditVerified is the outcome of audit verify.
type auditVerified struct {
	OK          bool   `json:"ok"`
	Entries     int64  `json:"entries"`
	Removed     int64  `json:"removed"`
	Checkpoints int    `json:"checkpoints"`
	Confirmed   int64  `json:"confirmed"`
	FirstWrong  *int64 `json:"first_wrong,omitempty"`
	Why         string `json:"why,omitempty"`
}

func newAuditVerify(s std) *cobra.Command {
	var kept []string
	var key string
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "verify", Short: "Find what was removed, changed, moved or cut off in the audit log", Args: cobra.NoArgs,
		Long: "Reads the whole audit log, and compares each entry with its hash and the hashes with what the key of the\n" +
			"log has signed. Names the first entry that is wrong, and exits 1. The database alone cannot show that its\n" +
			"end was cut off together with what was signed since: name a checkpoint that was kept elsewhere, and the\n" +
			"key, with --checkpoint and --key.",
		Example: "  mcp-authd audit verify\n" +
			"  mcp-authd audit verify --checkpoint kept/yesterday.txt --key auth.example.com/audit+f7a1...",
	}, func(c *cobra.Command) {
		c.Flags().StringArrayVar(&kept, "checkpoint", nil, "file of a checkpoint that was kept; may be repeated")
		c.Flags().StringVar(&key, "key", "", "key of the log that was kept (default: that of this installation)")
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}, func(c *cobra.Command, a *app, _ []string) error {
		checkpoints, err := readKept(kept)
		if err != nil {
			return err
		}
		if key == "" {
			if key, err = a.parts().AuditKey(c.Context()); err != nil {
				return err
			}
		}
		report, err := auditlog.Verify(c.Context(), a.store, key, checkpoints...)
		v := auditVerified{
			OK: err == nil, Entries: report.Entries, Removed: report.Removed, Checkpoints: report.Checkpoints,
			Confirmed: report.Confirmed,
		}
		if err != nil {
			v.Why = err.Error()
			var wrong *verify.Wrong
			if errors.As(err, &wrong) {
				v.FirstWrong, v.Why = &wrong.First, wrong.Why
			}
		}
		if asJSON {
			return errors.Join(printJSON(s.out, v), auditWrong(err))
		}
		if err != nil {
			return auditWrong(err)
		}
		_, err = fmt.Fprintf(s.out, "the audit log is whole: %d entries, %d confirmed by %s, %d removed by their age\n",
			v.Entries, v.Confirmed, count(v.Checkpoints+len(kept), "checkpoint", "checkpoints"), v.Removed)
		return err
	})
}

func auditWrong(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the audit log is not whole: %w; keep a copy of the database, and compare it with backups", err)
}

// maxKept bounds a file with a checkpoint in bytes.
const maxKept = 64 << 10

func readKept(files []string) (out [][]byte, err error) {
	for _, file := range files {
		info, err := os.Stat(file)
		if err == nil && info.Size() > maxKept {
			err = fmt.Errorf("%s: %w: it is too long for a checkpoint", file, fs.ErrInvalid)
		}
		var signed []byte
		if err == nil {
			signed, err = os.ReadFile(file)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, signed)
	}
	return out, nil
}

func newAuditCheckpoint(s std) *cobra.Command {
	var onlyKey, asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "checkpoint", Short: "Print a signed checkpoint of the audit log", Args: cobra.NoArgs,
		Long: "Signs how far the audit log has come, and prints that: keep it where the operator of the database cannot\n" +
			"reach it, with the key (--key), and audit verify will show whether anything before it was changed since.\n" +
			"The format is that of https://c2sp.org/tlog-checkpoint. A server signs one each minute by itself.",
		Example: "  mcp-authd audit checkpoint >kept/2026-03-01.txt\n  mcp-authd audit checkpoint --key",
	}, func(c *cobra.Command) {
		c.Flags().BoolVar(&onlyKey, "key", false, "print the public key of the log, name+hash+key")
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}, func(c *cobra.Command, a *app, _ []string) error {
		signer, err := a.parts().AuditSigner(c.Context())
		if err != nil {
			return err
		}
		if onlyKey && !asJSON {
			_, err = fmt.Fprintln(s.out, signer.Key())
			return err
		}
		newest, err := signer.Checkpoint(c.Context(), a.parts().Now())
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(s.out, map[string]any{
				"size": newest.Size, "at": newest.At, "key": signer.Key(), "checkpoint": string(newest.Signed),
			})
		}
		_, err = s.out.Write(newest.Signed)
		return err
	})
}
