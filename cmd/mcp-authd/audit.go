package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

func newAuditCommand(s std) *cobra.Command {
	return group("audit", "Read, check and export the audit log", newAuditList(s), newAuditShow(s),
		newAuditProve(s), newAuditVerify(s), newAuditCheckpoint(s), newAuditExport(s), newAuditSinks(s))
}

// auditFilter holds the flags of audit list.
type auditFilter struct {
	admin.AuditWanted
	since, until string
	limit        int
	asJSON       bool
}

func (f *auditFilter) add(c *cobra.Command) {
	c.Flags().StringVar(&f.Person, "person", "", "only of this user: name or id of the account, even if it was deleted")
	c.Flags().StringVar(&f.Application, "application", "",
		"only of this application, with all of its registrations (id or name, or the id of one of them)")
	c.Flags().StringVar(&f.Grant, "grant", "", "only of this grant, by its full id")
	c.Flags().StringVar(&f.Event, "event", "", "only events of this type, such as consent.approved")
	c.Flags().StringVar(&f.since, "since", "", "only since this time, such as 2026-03-01T12:00:00Z, or this long ago, such as 15m")
	c.Flags().StringVar(&f.until, "until", "", "only before this time, or this long ago")
	c.Flags().IntVar(&f.limit, "limit", 100, "number of entries, the newest ones; 0 for all")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
}

// wanted returns the flags as input of the operation.
func (f *auditFilter) wanted() (in admin.AuditWanted, err error) {
	if f.limit < 0 {
		return in, errors.New("--limit must not be negative")
	}
	in = f.AuditWanted
	if in.Since, err = parseMoment("--since", f.since); err != nil {
		return in, err
	}
	in.Until, err = parseMoment("--until", f.until)
	return in, err
}

// entries reads the entries page by page, and returns them oldest first.
func (f *auditFilter) entries(ctx context.Context, by admin.Caller) ([]admin.AuditEntry, error) {
	in, err := f.wanted()
	if err != nil {
		return nil, err
	}
	out := []admin.AuditEntry{}
	for f.limit == 0 || len(out) < f.limit {
		in.Limit = pageSize
		if f.limit > 0 {
			in.Limit = min(pageSize, f.limit-len(out))
		}
		some, err := admin.AuditList.Do(ctx, by, in)
		if err != nil {
			return nil, err
		}
		out = append(out, some.Items...)
		if in.After = some.Next; in.After == "" {
			break
		}
	}
	slices.Reverse(out)
	return out, nil
}

func newAuditList(s std) *cobra.Command {
	var f auditFilter
	return callerCommand(s, admin.AuditList, &cobra.Command{
		Args: cobra.NoArgs, Example: "--person alice --since 24h\n--event consent.approved --limit 0 --json\n--application Claude",
	}, f.add, func(c *cobra.Command, by admin.Caller, _ []string) error {
		views, err := f.entries(c.Context(), by)
		if err != nil {
			return err
		}
		if f.asJSON {
			return printJSON(s.out, views)
		}
		if len(views) == 0 {
			_, err = fmt.Fprintln(s.out, "no such entries")
			return err
		}
		t := newTable(s.out, "INDEX", "AT", "EVENT", "PERSON", "CLIENT", "RESOURCE", "GRANT", "NOT PROVEN")
		for _, v := range views {
			t.row(strconv.FormatInt(v.Index, 10), label.Moment(v.At), v.Event, nameAndID(v.UserName, v.Person),
				nameAndID(v.ClientName, v.ClientID), v.Resource, v.Grant, v.Unproven)
		}
		return t.flush()
	})
}

// auditIndex parses the index of an entry.
func auditIndex(text string) (admin.AuditIndex, error) {
	index, err := strconv.ParseInt(text, 10, 64)
	if err != nil || index < 0 {
		return admin.AuditIndex{}, fmt.Errorf("%q is not an index, see: mcp-authd audit list", text)
	}
	return admin.AuditIndex{Index: index}, nil
}

func newAuditShow(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.AuditShow, &cobra.Command{
		Use: "INDEX", Args: cobra.ExactArgs(1), Example: "4711\n4711 --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			index, err := auditIndex(args[0])
			if err != nil {
				return err
			}
			v, err := admin.AuditShow.Do(c.Context(), by, index)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, v)
			}
			printFields(s.out, "index", strconv.FormatInt(v.Index, 10), "at", v.At.Format(exactTime), "event", v.Event)
			for _, name := range slices.Sorted(maps.Keys(v.Fields)) {
				text := v.Fields[name]
				if now := v.NameOf(name); now != "" {
					text += " (" + now + ")"
				}
				printFields(s.out, name, text)
			}
			printFields(s.out, "leaf", v.Leaf.String())
			if v.Unproven != "" {
				printFields(s.out, "not proven", v.Unproven)
			}
			return nil
		})
}

func newAuditProve(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.AuditProve, &cobra.Command{
		Use: "INDEX", Args: cobra.ExactArgs(1), Example: "4711\n4711 --json >proof.json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print the proof as JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			index, err := auditIndex(args[0])
			if err != nil {
				return err
			}
			proof, err := admin.AuditProve.Do(c.Context(), by, index)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, proof.Proof)
			}
			t := newTable(s.out, "INDEX", "AT", "EVENT", "PERSON", "CLIENT", "TOOL", "SCOPE")
			for _, v := range proof.Chain {
				t.row(strconv.FormatInt(v.Index, 10), label.Moment(v.At), v.Event, nameAndID(v.UserName, v.Person),
					nameAndID(v.ClientName, v.ClientID), v.Tool, v.Fields["scope"])
			}
			if err := t.flush(); err != nil || !proof.Removed && !proof.Unapproved {
				return err
			}
			if proof.Unapproved {
				_, err = fmt.Fprintln(s.out, "No person approved the grant on a page: an operator, a person for a program of "+
					"theirs, or an assertion gave it.")
				return err
			}
			_, err = fmt.Fprintln(s.out,
				"The approval that this rests on is gone: entries of its age were removed from the log (audit.keep).")
			return err
		})
}

// auditVerified is the result of audit verify.
type auditVerified struct {
	OK          bool   `json:"ok"`
	Checked     bool   `json:"checked"` // false if the database or the key could not be read
	Entries     int64  `json:"entries"`
	Removed     int64  `json:"removed"`
	Checkpoints int    `json:"checkpoints"`
	Confirmed   int64  `json:"confirmed"`
	Sealed      int64  `json:"sealed"` // entries whose MAC was checked
	FirstWrong  *int64 `json:"first_wrong,omitempty"`
	Why         string `json:"why,omitempty"`
}

func newAuditVerify(s std) *cobra.Command {
	var kept []string
	var key string
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "verify", Short: "Check the audit log for removed, changed, moved or truncated entries", Args: cobra.NoArgs,
		Long: "Checks the whole audit log: compares each entry with its hash and the MAC of its writer, and the\n" +
			"hashes with the signatures of the log's key. Names the first wrong entry, and exits with 1. The\n" +
			"database alone cannot show that the end of the log was cut off together with its signatures. To\n" +
			"check that, give a checkpoint and key that you keep elsewhere, with --checkpoint and --key.",
		Example: "  mcp-authd audit verify\n" +
			"  mcp-authd audit verify --checkpoint kept/yesterday.txt --key auth.example.com/audit+f7a1...",
	}, func(c *cobra.Command) {
		c.Flags().StringArrayVar(&kept, "checkpoint", nil, "file with an earlier checkpoint; repeat for more")
		c.Flags().StringVar(&key, "key", "", "your copy of the key of the log (default: the key of this installation)")
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}, func(c *cobra.Command, a *app, _ []string) error {
		checkpoints, err := readKept(kept)
		if err != nil {
			return err
		}
		own := func(ctx context.Context) (auditlog.Keys, error) {
			found, err := a.Parts().AuditKeys(ctx)
			found.Public = cmp.Or(key, found.Public)
			return found, err
		}
		report, err := auditlog.Verify(c.Context(), a.Store, own, checkpoints...)
		v := auditVerified{
			OK: err == nil, Checked: !errors.Is(err, auditlog.ErrUnchecked), Entries: report.Entries,
			Removed: report.Removed, Checkpoints: report.Checkpoints, Confirmed: report.Confirmed,
			Sealed: report.Sealed,
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
		_, err = fmt.Fprintf(s.out, "the audit log is whole: %s, %d confirmed by %s, %d with the MAC of a writer of this "+
			"log, %d removed by their age\n", label.Count(v.Entries, "entry", "entries"), v.Confirmed,
			label.Count(v.Checkpoints+len(kept), "checkpoint", "checkpoints"), v.Sealed, v.Removed)
		return err
	})
}

func auditWrong(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, auditlog.ErrUnchecked):
		return fmt.Errorf("%w; that says nothing about its entries: mend the cause, and run this again", err)
	}
	return fmt.Errorf("the audit log is not whole: %w; keep a copy of the database, and compare it with backups", err)
}

// maxKept limits a file with a checkpoint, in bytes.
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
	return callerCommand(s, admin.AuditCheckpointNew, &cobra.Command{
		Args: cobra.NoArgs, Example: ">kept/2026-03-01.txt\n--key",
	}, func(c *cobra.Command) {
		c.Flags().BoolVar(&onlyKey, "key", false, "print the public key of the log as name+hash+key")
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}, func(c *cobra.Command, by admin.Caller, _ []string) error {
		newest, err := admin.AuditCheckpointNew.Do(c.Context(), by, admin.None{})
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(s.out, newest)
		case onlyKey:
			_, err = fmt.Fprintln(s.out, newest.Key)
			return err
		}
		_, err = io.WriteString(s.out, newest.Checkpoint)
		return err
	})
}

func newAuditSinks(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.AuditSinks, &cobra.Command{Args: cobra.NoArgs, Example: "--json"},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, _ []string) error {
			all, err := admin.AuditSinks.Do(c.Context(), by, admin.None{})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, all.Items)
			}
			return printSinks(s, all.Items)
		})
}

func printSinks(s std, all []admin.AuditSink) error {
	t := newTable(s.out, "SINK", "KIND", "FORMAT", "WAITING", "OLDEST", "LOST", "FAILED")
	for _, v := range all {
		oldest := ""
		if !v.Oldest.IsZero() {
			oldest = label.Moment(v.Oldest)
		}
		waiting := strconv.FormatInt(v.Waiting, 10)
		if !v.Opened {
			waiting = "never opened"
		}
		t.row(v.ID, v.Kind, v.Format, waiting, oldest, strconv.FormatInt(v.Lost, 10), v.Failed)
	}
	return t.flush()
}
