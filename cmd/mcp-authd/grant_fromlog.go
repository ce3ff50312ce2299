package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// logged is a line of a server's log about revoked access.
type logged struct {
	Time time.Time `json:"time"`
	At   time.Time `json:"at"` // of a command's change, which is logged later
	// RevokedAt is when a cut took effect. It is logged once all of its grants are marked.
	RevokedAt time.Time `json:"revoked_at"`
	RevokedBy string    `json:"revoked_by"`
	Scope     string    `json:"scope"`
	Event     string    `json:"event"`
	Grant     string    `json:"grant"`
	User      string    `json:"user"`
	UserName  string    `json:"user_name"`
	ClientID  string    `json:"client_id"`
	Resource  string    `json:"resource"`
	What      string    `json:"what"`
	KeyID     string    `json:"kid"`
	Reason    string    `json:"reason"`
	// Connector is set for sessions at providers, and for grants that depend on one.
	Connector string `json:"connector"`
	Session   string `json:"provider_session"`
	Upstream  string `json:"upstream"` // the session, in a log of the previous version
}

func (l logged) when() time.Time {
	if !l.At.IsZero() {
		return l.At
	}
	return l.Time
}

// maxLine limits a log line. Lines with events are shorter.
const maxLine = 1 << 20

// readLog returns the revocations since the given time, in order. A container runtime may put text
// before the JSON of a line.
func readLog(r io.Reader, since time.Time) (out []logged, err error) {
	lines, events := bufio.NewScanner(r), 0
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		start := bytes.IndexByte(lines.Bytes(), '{')
		var l logged
		if start < 0 || json.Unmarshal(lines.Bytes()[start:], &l) != nil || l.Event == "" {
			continue
		}
		events++
		if !l.when().Before(since) {
			out = append(out, l)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("the log cannot be read: %w", err)
	}
	if events == 0 {
		return nil, errors.New(
			"no line of the log is an event: it takes the JSON that a server writes with log.format: json and log.level: info",
		)
	}
	slices.SortStableFunc(out, func(a, b logged) int { return a.when().Compare(b.when()) })
	return out, nil
}

// openLog opens a file, or standard input for "-".
func openLog(s std, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(s.in), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--from-log: %w", err)
	}
	return f, nil
}

// parseMoment parses the value of a flag: a time, or how long ago it was.
func parseMoment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{},
		fmt.Errorf("%s %q is neither a time, such as 2026-03-01T12:00:00Z, nor how long ago, such as 15m", flag, text)
}

// repetition is a logged revocation that the database does not contain.
type repetition struct {
	At   time.Time `json:"at"`
	Cut  string    `json:"cut"`
	done func(context.Context) error
}

// repetitions lists the revocations of a log to repeat, and the changes that only an administrator
// can repeat.
type repetitions struct {
	a      *app
	names  *admin.Names
	events []logged
	// withdrawn holds the applications whose consent was withdrawn again.
	withdrawn map[held]bool

	Repeated []repetition `json:"repeated"`
	ByHand   []string     `json:"by_hand"`
}

// repetitions compares a log with the database. It omits revocations that the database contains, so
// a log can be repeated any number of times.
func (a *app) repetitions(ctx context.Context, events []logged) (*repetitions, error) {
	r := &repetitions{
		a: a, names: a.names(), events: events, withdrawn: map[held]bool{},
		Repeated: []repetition{}, ByHand: []string{},
	}
	for i, l := range events {
		if err := r.look(ctx, i, l); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *repetitions) look(ctx context.Context, i int, l logged) error {
	switch audit.Current(l.Event) {
	case audit.GrantRevoked:
		return r.grant(ctx, l, l.Grant, cmp.Or(storage.RevokedBy(l.RevokedBy), storage.ByOperator))
	case audit.EverythingStopped:
		return r.stopped(ctx, l)
	case audit.GrantNarrowed, audit.GrantPaused:
		return r.lessened(ctx, l)
	case audit.GrantsRevoked:
		return r.grants(ctx, l)
	case audit.TokenRevoked:
		return r.grant(ctx, l, l.Grant, storage.ByClient)
	case audit.TokenReuse:
		return r.grant(ctx, l, l.Grant, storage.ByReuse)
	case audit.UserDeleted:
		return r.user(ctx, l, "deleted", r.delete)
	case audit.UserChanged:
		return r.changed(ctx, i, l)
	case audit.ClientDeleted:
		return r.client(ctx, l)
	case audit.ResourceChanged:
		return r.resource(ctx, l)
	case audit.ProviderEnded:
		return r.upstream(ctx, l)
	case audit.SigningKeyRevoked:
		return r.key(ctx, l)
	}
	if l.Event == audit.ClientChanged && l.What == "secret" {
		r.byHand("the secret of the client %s was changed at %s: if the earlier one is good again, run: mcp-authd client rotate-secret %[1]s",
			l.ClientID, label.Moment(l.when()))
	}
	return nil
}

func (r *repetitions) add(l logged, done func(context.Context) error, format string, args ...any) {
	cut := fmt.Sprintf(format, args...)
	if !slices.ContainsFunc(r.Repeated, func(o repetition) bool { return o.Cut == cut }) {
		r.Repeated = append(r.Repeated, repetition{l.when(), cut, done})
	}
}

func (r *repetitions) byHand(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.ByHand, text) {
		r.ByHand = append(r.ByHand, text)
	}
}

func (r *repetitions) grant(ctx context.Context, l logged, id string, by storage.RevokedBy) error {
	if id == "" {
		return nil
	}
	page, err := r.a.Store.ListGrants(ctx, "", "", id[:len(id)-1], pageSize)
	if err != nil {
		return err
	}
	for _, g := range page {
		if g.ID == id {
			r.end(ctx, l, g, by)
		}
	}
	return nil
}

// cutAt returns when a revocation took effect.
func (l logged) cutAt() time.Time {
	if !l.RevokedAt.IsZero() {
		return l.RevokedAt
	}
	return l.when()
}

// grants repeats the revocation of a command by user, client, resource, provider or for all. It
// skips grants created later, which their users have given again.
func (r *repetitions) grants(ctx context.Context, l logged) error {
	live, err := r.a.liveGrants(ctx, l.User, l.ClientID, l.Resource)
	for _, g := range live {
		if !g.CreatedAt.Before(l.cutAt()) {
			continue
		}
		if l.Connector != "" {
			u, err := r.a.Store.Upstream(ctx, g.UpstreamID)
			if errors.Is(err, storage.ErrNotFound) || err == nil && u.Connector != l.Connector {
				continue
			}
			if err != nil {
				return err
			}
		}
		r.end(ctx, l, g, storage.ByOperator)
	}
	return err
}

func (r *repetitions) user(
	ctx context.Context, l logged, what string, do func(context.Context, storage.User) error,
) error {
	u, err := r.a.Store.User(ctx, l.User)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err == nil {
		r.add(l, func(ctx context.Context) error { return do(ctx, u) }, "user %s (%s), %s", u.Name, u.ID, what)
	}
	return err
}

func (r *repetitions) delete(ctx context.Context, u storage.User) error {
	accounts, err := r.a.Users()
	if err != nil {
		return err
	}
	return accounts.Delete(ctx, u.ID)
}

func (r *repetitions) disable(ctx context.Context, u storage.User) error {
	accounts, err := r.a.Users()
	if err != nil {
		return err
	}
	return accounts.Disable(ctx, u.ID)
}

// changed handles a change of an account. If an account was enabled again later, its grants created
// before it was disabled are revoked.
func (r *repetitions) changed(ctx context.Context, i int, l logged) error {
	switch l.What {
	case "password":
		r.byHand("the password of %s was changed at %s: if the earlier one is good again, run: mcp-authd user passwd %[1]s",
			l.UserName, label.Moment(l.when()))
		return nil
	case "disabled":
	default:
		return nil
	}
	enabled := slices.ContainsFunc(r.events[i+1:], func(o logged) bool {
		return o.Event == audit.UserChanged && o.User == l.User && o.What == "enabled"
	})
	u, err := r.a.Store.User(ctx, l.User)
	switch {
	case errors.Is(err, storage.ErrNotFound), err == nil && u.Disabled:
		return nil
	case err != nil:
		return err
	case !enabled:
		return r.user(ctx, l, "disabled", r.disable)
	}
	live, err := r.a.liveGrants(ctx, u.ID, "", "")
	for _, g := range live {
		if g.CreatedAt.Before(l.when()) {
			r.end(ctx, l, g, storage.ByDisabled)
		}
	}
	return err
}

func (r *repetitions) client(ctx context.Context, l logged) error {
	if strings.HasSuffix(l.ClientID, "...") {
		r.byHand("the client %s was deleted at %s, and its id is too long for the log: find it with mcp-authd client list, and delete it",
			l.ClientID, label.Moment(l.when()))
		return nil
	}
	_, err := r.a.Store.Client(ctx, l.ClientID)
	if errors.Is(err, storage.ErrRevoked) {
		return nil
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	r.add(l, func(ctx context.Context) error {
		if err := r.a.Store.DeleteClient(ctx, l.ClientID, r.a.Parts().Now()); err != nil {
			return err
		}
		r.a.Audit.Record(ctx, audit.ClientDeleted, audit.Client(storage.Client{ID: l.ClientID}))
		return nil
	}, "client %s, deleted", l.ClientID)
	return nil
}

func (r *repetitions) resource(ctx context.Context, l logged) error {
	if l.What != "removed" {
		return nil
	}
	stored, err := r.a.Store.ListResources(ctx)
	for _, res := range stored {
		if res.URI == l.Resource && res.CreatedAt.Before(l.when()) {
			r.add(l, func(ctx context.Context) error {
				return r.a.Store.RemoveResource(ctx, res.URI, r.a.Parts().Now())
			}, "resource %s, removed", res.URI)
		}
		if slices.Contains(res.Aliases, l.Resource) {
			r.byHand("the alias %s was removed at %s and is there again: name those that stay with mcp-authd resource set %s --alias ALIAS",
				l.Resource, label.Moment(l.when()), res.URI)
		}
	}
	return err
}

func (r *repetitions) upstream(ctx context.Context, l logged) error {
	u, err := r.a.Store.Upstream(ctx, cmp.Or(l.Session, l.Upstream))
	switch {
	case errors.Is(err, storage.ErrNotFound), err == nil && !u.EndedAt.IsZero():
		return nil
	case err != nil:
		return err
	}
	r.add(l, func(ctx context.Context) error {
		_, err := r.a.Store.EndUpstreams(ctx, storage.UpstreamKey{ID: u.ID}, l.Reason, r.a.Parts().Now())
		return err
	}, "session of %s at %s (%s), ended", label.Printable(r.names.User(ctx, u.UserID)), u.Connector, u.ID)
	return nil
}

func (r *repetitions) key(ctx context.Context, l logged) error {
	all, err := r.a.Store.Keys(ctx, r.a.Parts().Now())
	if slices.ContainsFunc(all, func(k storage.SigningKey) bool { return k.ID == l.KeyID }) {
		r.byHand("the signing key %s was revoked at %s and is good again: mcp-authd keys revoke %[1]s", l.KeyID,
			label.Moment(l.when()))
	}
	return err
}
