package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/auditformat"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// AuditWanted selects entries of the audit log.
type AuditWanted struct {
	Person      string    `json:"person,omitempty" jsonschema:"of a person: name or id, also of an account that was deleted"`
	Application string    `json:"application,omitempty" jsonschema:"of an application: its id, the id of one of its clients, or its name"`
	Grant       string    `json:"grant,omitempty" jsonschema:"of a grant, by its whole id"`
	Event       string    `json:"event,omitempty" jsonschema:"of one kind, such as consent.approved"`
	Since       time.Time `json:"since,omitzero" jsonschema:"from a time on"`
	Until       time.Time `json:"until,omitzero" jsonschema:"before a time"`
	Paging
}

// AuditEntry is an entry of the audit log. Fields may hold text that clients and users chose.
// UserName and ClientName come from the entry. If the entry has only IDs, they are the current
// names.
type AuditEntry struct {
	auditformat.View
	UserName   string `json:"user_name,omitempty" jsonschema:"name of the user: as in the entry, or the present one"`
	ClientName string `json:"client_name,omitempty" jsonschema:"as in the entry, or the present one"`
}

// NameOf returns the current name for an ID field, or "" if the entry recorded a name.
func (e AuditEntry) NameOf(field string) string {
	switch {
	case field == "user" && e.Fields["user_name"] == "":
		return e.UserName
	case field == "client_id" && e.Fields["client_name"] == "":
		return e.ClientName
	}
	return ""
}

// AuditIndex names an entry of the audit log.
type AuditIndex struct {
	Index int64 `json:"index" jsonschema:"the index of the entry, as in audit list"`
}

// AuditProof is a proof that can be checked with the log's public key alone, and the entries that
// it proves.
type AuditProof struct {
	verify.Proof
	Key   string       `json:"key" jsonschema:"public key of the log; compare it with your copy"`
	Chain []AuditEntry `json:"chain" jsonschema:"the proved entries by index; the requested one is last"`
}

// AuditCheckpoint is the signed size of the audit log.
type AuditCheckpoint struct {
	Size       int64     `json:"size" jsonschema:"number of entries in the log"`
	At         time.Time `json:"at"`
	Key        string    `json:"key" jsonschema:"public key of the log for verifiers: name+hash+key"`
	Checkpoint string    `json:"checkpoint" jsonschema:"in the format of c2sp.org/tlog-checkpoint"`
}

// AuditSink describes a configured log destination and its queue.
type AuditSink struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"`
	Format  string    `json:"format"`
	Opened  bool      `json:"opened" jsonschema:"a server has delivered to it, or has tried to"`
	Waiting int64     `json:"waiting" jsonschema:"queued entries"`
	Oldest  time.Time `json:"oldest,omitzero" jsonschema:"time of the oldest queued entry"`
	Lost    int64     `json:"lost" jsonschema:"entries that were lost to it"`
	Failed  string    `json:"failed" jsonschema:"why the last delivery failed; empty if it succeeded"`
}

// Operations on the audit log.
var (
	AuditList = define(Spec{
		Name: "audit list", Method: "GET", Path: "/audit", Roles: reading, Summary: "List entries of the audit log",
		Details: "Lists entries of the audit log: sign-ins, consents, tokens, revocations and administration. Each\n" +
			"entry has an index for audit show. An entry that is not proven gives the reason. The first page has\n" +
			"the newest entries. A page before the last one may have few entries or none, because one request\n" +
			"reads at most 20,000.",
	}, (*Service).listAudit)
	AuditShow = define(Spec{
		Name: "audit show", Method: "GET", Path: "/audit/{index}", Roles: reading,
		Summary: "Show an entry of the audit log",
		Details: "Shows an audit log entry with all of its fields. Its leaf is the hash that goes into the log.",
	}, (*Service).showAudit)
	AuditProve = define(Spec{
		Name: "audit prove", Method: "GET", Path: "/audit/{index}/proof", Roles: reading,
		Summary: "Prove what allowed a tool call",
		Details: "Proves what allowed a tool call. It follows an entry of the audit log, such as tool.called, to its\n" +
			"grant, its token and the user's consent, and proves that each is in the log that a checkpoint has\n" +
			"signed. As JSON the proof is one document, which examples/auditverify checks with only the key of\n" +
			"the log.",
	}, (*Service).proveAudit)
	AuditCheckpointNew = define(Spec{
		Name: "audit checkpoint", Method: "GET", Path: "/audit/checkpoint", Roles: reading,
		Summary: "Sign the current state of the audit log",
		Details: "Signs the current size and hash of the audit log. Keep this checkpoint and the key of the log where\n" +
			"the administrator of the database cannot change them. audit verify then shows whether any earlier\n" +
			"entry was changed. The format is https://c2sp.org/tlog-checkpoint. A server also signs a checkpoint\n" +
			"each minute.",
	}, (*Service).auditCheckpoint)
	AuditSinks = define(Spec{
		Name: "audit sinks", Method: "GET", Path: "/audit/sinks", Roles: reading,
		Summary: "List the log destinations of the audit log, and their queues",
		Details: "Lists the configured log destinations (audit.sinks). For each one it shows the queued entries, the\n" +
			"age of the oldest, why the last delivery failed, and how many entries are lost to it.",
	}, (*Service).auditSinks)
)

func (s *Service) listAudit(ctx context.Context, in AuditWanted) (p Page[AuditEntry], err error) {
	q := storage.AuditSearch{
		Person: in.Person, Grant: in.Grant, Event: in.Event, Since: in.Since, Until: in.Until, Limit: in.bounded(),
	}
	if q.After, err = auditPlace(in.After); err != nil {
		return p, err
	}
	if in.Person != "" {
		switch u, err := s.FindUser(ctx, in.Person); {
		case err == nil:
			q.Person = u.ID
		case !errors.Is(err, ErrNotFound):
			return p, err
		}
	}
	search := s.Store.SearchAudit
	if in.Application != "" {
		of, err := s.registrationsOf(ctx, in.Application)
		if err != nil {
			return p, err
		}
		search = of.searchAudit
	}
	found, next, err := search(ctx, q)
	if err != nil {
		return p, err
	}
	unproven, err := s.unproven(ctx, len(found))
	if err != nil {
		return p, err
	}
	p.Items = make([]AuditEntry, 0, len(found))
	for _, e := range found {
		v, err := viewAudited(e, unproven(e))
		if err != nil {
			return Page[AuditEntry]{}, err
		}
		p.Items = append(p.Items, v)
	}
	s.nameAudited(ctx, p.Items)
	if !next.At.IsZero() {
		p.Next = fmt.Sprintf("%d.%d", next.At.UnixMilli(), next.Index)
	}
	return p, nil
}

// auditChunk is how many entries are read at once to look for those of an application.
const auditChunk = 1000

// searchAudit is storage.AuditLog.SearchAudit for the entries of the application. It reads at most storage.AuditReads
// entries, also if q has conditions that few of them meet.
func (r *registrations) searchAudit(
	ctx context.Context, q storage.AuditSearch,
) (found []storage.AuditEntry, next storage.AuditPlace, err error) {
	limit := q.Limit
	q.Limit, q.Reads = auditChunk, auditChunk
	for read := 0; read < storage.AuditReads; read += auditChunk {
		some, next, err := r.s.Store.SearchAudit(ctx, q)
		if err != nil {
			return nil, next, err
		}
		of, err := r.audited(ctx, some)
		if err != nil {
			return nil, next, err
		}
		for i, e := range some {
			if !of[i] {
				continue
			}
			if len(found) == limit {
				if i > 0 {
					q.After = storage.AuditPlace{At: some[i-1].At, Index: some[i-1].Index}
				}
				return found, q.After, nil
			}
			found = append(found, e)
		}
		if q.After = next; next.At.IsZero() {
			break
		}
	}
	return found, q.After, nil
}

// audited reports for each entry whether it is of the application.
func (r *registrations) audited(ctx context.Context, entries []storage.AuditEntry) ([]bool, error) {
	clients, keys := make([]string, len(entries)), make([]string, len(entries))
	for i, e := range entries {
		entry, err := verify.ParseEntry(e.Leaf)
		if err != nil {
			return nil, err
		}
		clients[i], keys[i] = entry.Fields["client_id"], entry.Fields["application"]
	}
	known, err := r.has(ctx, clients)
	if err != nil {
		return nil, err
	}
	counts, err := r.counts(ctx, slices.Clone(keys))
	of := make([]bool, len(entries))
	for i := range of {
		of[i] = known[clients[i]] || counts[keys[i]]
	}
	return of, err
}

// auditPlace reads the next of a page: milliseconds and an index.
func auditPlace(after string) (p storage.AuditPlace, err error) {
	if after == "" {
		return p, nil
	}
	at, index, _ := strings.Cut(after, ".")
	ms, badTime := strconv.ParseInt(at, 10, 64)
	n, badIndex := strconv.ParseInt(index, 10, 64)
	if badTime != nil || badIndex != nil || n < 0 {
		return p, fault(ErrInvalid, "%q is not the next of a page of this list", after)
	}
	return storage.AuditPlace{At: time.UnixMilli(ms).UTC(), Index: n}, nil
}

// AuditEvents returns the names of all events that the audit log keeps, sorted.
func AuditEvents() []string { return auditformat.Events() }

// nameAudited adds names to entries that have only IDs, such as tool calls.
func (s *Service) nameAudited(ctx context.Context, entries []AuditEntry) {
	names := s.Names()
	for i := range entries {
		e := &entries[i]
		if e.UserName == "" && e.Person != "" {
			e.UserName = nameOf(e.Person, names.User(ctx, e.Person))
		}
		if e.ClientName == "" && e.ClientID != "" {
			e.ClientName = nameOf(e.ClientID, names.Client(ctx, e.ClientID))
		}
	}
}

// nameOf returns the name found for an ID, or "" if it is the ID itself.
func nameOf(id, found string) string {
	if found == id {
		return ""
	}
	return found
}

// unproven returns a function that explains why an entry is not proven. n is the number of entries
// to show.
func (s *Service) unproven(ctx context.Context, n int) (func(storage.AuditEntry) string, error) {
	if n == 0 {
		return nil, nil
	}
	var standing auditlog.Standing
	signer, err := s.AuditChecker(ctx)
	if err == nil {
		standing, err = signer.Standing(ctx)
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	return standing.Unproven, nil
}

// viewAudited returns the entry to show, with the reason why it is not proven.
func viewAudited(e storage.AuditEntry, unproven string) (AuditEntry, error) {
	entry, err := auditformat.Read(e.Index, e.Leaf)
	if err != nil {
		return AuditEntry{}, fault(ErrConflict, "entry %d of the audit log cannot be read: run: mcp-authd audit verify",
			e.Index)
	}
	entry.Unproven = unproven
	f := entry.Fields
	return AuditEntry{
		View:       auditformat.ViewOf(entry),
		UserName:   f["user_name"],
		ClientName: cmp.Or(f["client_name"], f["shown_client"]),
	}, nil
}

// auditEntry returns the entry at an index.
func (s *Service) auditEntry(ctx context.Context, index int64) (storage.AuditEntry, error) {
	if index < 0 {
		return storage.AuditEntry{}, fault(ErrInvalid, "%d is not an index, see: mcp-authd audit list", index)
	}
	head, err := s.Store.AuditHead(ctx, "")
	if err != nil {
		return storage.AuditEntry{}, err
	}
	found, err := s.Store.AuditEntries(ctx, storage.AuditQuery{From: index, Below: index + 1, Limit: 1})
	switch {
	case err != nil:
		return storage.AuditEntry{}, err
	case len(found) == 1:
		return found[0], nil
	}
	now, err := s.Store.AuditHead(ctx, "") // the entry may have been removed since, or added after head was read
	switch {
	case err != nil:
		return storage.AuditEntry{}, err
	case index < now.First:
		return storage.AuditEntry{}, fault(ErrNotFound, "entry %d is older than audit.keep and was removed", index)
	case index < head.Size:
		return storage.AuditEntry{}, fault(ErrConflict, "entry %d is missing, run: mcp-authd audit verify", index)
	}
	return storage.AuditEntry{}, fault(ErrNotFound, "there is no entry %d: the log has %d, from 0 on", index, head.Size)
}

func (s *Service) showAudit(ctx context.Context, in AuditIndex) (AuditEntry, error) {
	e, err := s.auditEntry(ctx, in.Index)
	if err != nil {
		return AuditEntry{}, err
	}
	unproven, err := s.unproven(ctx, 1)
	if err != nil {
		return AuditEntry{}, err
	}
	v, err := viewAudited(e, unproven(e))
	named := []AuditEntry{v}
	s.nameAudited(ctx, named)
	return named[0], err
}

func (s *Service) proveAudit(ctx context.Context, in AuditIndex) (AuditProof, error) {
	e, err := s.auditEntry(ctx, in.Index)
	if err != nil {
		return AuditProof{}, err
	}
	signer, err := s.AuditSigner(ctx)
	if err != nil {
		return AuditProof{}, err
	}
	proof, err := auditlog.Prove(ctx, s.Store, signer, e, s.Now())
	if err != nil {
		return AuditProof{}, inconsistent(err)
	}
	out := AuditProof{Proof: proof, Key: signer.Key()}
	for _, p := range proof.Entries {
		v, err := viewAudited(storage.AuditEntry{Index: p.Index, Leaf: []byte(p.Leaf)}, "")
		if err != nil {
			return AuditProof{}, err
		}
		out.Chain = append(out.Chain, v)
	}
	s.nameAudited(ctx, out.Chain)
	return out, nil
}

func (s *Service) auditCheckpoint(ctx context.Context, _ None) (AuditCheckpoint, error) {
	signer, err := s.AuditSigner(ctx)
	if err != nil {
		return AuditCheckpoint{}, err
	}
	newest, err := signer.Checkpoint(ctx, s.Now())
	return AuditCheckpoint{
		Size: newest.Size, At: newest.At, Key: signer.Key(), Checkpoint: string(newest.Signed),
	}, inconsistent(err)
}

// inconsistent turns the log's inconsistency error into one that users can read.
func inconsistent(err error) error {
	if errors.Is(err, auditlog.ErrInconsistent) {
		return fault(ErrConflict, "%s", strings.ReplaceAll(err.Error(), "\n", ": "))
	}
	return err
}
