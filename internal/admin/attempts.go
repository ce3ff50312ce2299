package admin

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/identifier"
)

// maxAttempts limits how many attempts are listed.
const maxAttempts = 1000

// AttemptsWanted selects attempts.
type AttemptsWanted struct {
	Reference   string    `json:"reference,omitempty" jsonschema:"only the one with this reference"`
	User        string    `json:"user,omitempty" jsonschema:"only of this user (name or id)"`
	Client      string    `json:"client,omitempty" jsonschema:"only by this client (name or id, also one that is not known)"`
	Application string    `json:"application,omitempty" jsonschema:"only by registrations of this application: its id, the id of one of them, or its name"`
	Address     string    `json:"address,omitempty" jsonschema:"only from this IP address"`
	Since       time.Time `json:"since,omitzero" jsonschema:"only those that ended since then"`
	Until       time.Time `json:"until,omitzero" jsonschema:"only those that began before then"`
	Failed      bool      `json:"failed,omitempty" jsonschema:"only those with a fault"`
	Limit       int       `json:"limit,omitempty" jsonschema:"the newest that match, at most 1000; 50 when it is left out"`
}

// AttemptReference names an attempt.
type AttemptReference struct {
	Reference string `json:"reference" jsonschema:"the reference on an error page, or of another step"`
}

// AttemptDetails describes an attempt with its steps. Text from clients and users was redacted
// before it was stored, but it remains untrusted data.
type AttemptDetails struct {
	attempt.Attempt
	Events  []attempt.Step `json:"events"`
	LeftOut int            `json:"events_left_out"`
}

// Operations on attempts.
var (
	AttemptList = define(Spec{
		Name: "attempt list", Method: "GET", Path: "/attempts", Roles: readers,
		Summary: "List attempts, newest first",
		Details: "Lists the attempts of clients to get tokens, from reading the metadata to the tokens or the failure.\n" +
			"Each attempt is one line. Attempts are redacted before they are stored.",
	}, (*Service).listAttempts)
	AttemptShow = define(Spec{
		Name: "attempt show", Method: "GET", Path: "/attempts/{reference}", Roles: readers,
		Summary: "Show each step of an attempt",
	}, (*Service).showAttempt)
	AttemptExplain = define(Spec{
		Name: "attempt explain", Method: "GET", Path: "/attempts/{reference}/explanation", Roles: readers,
		Summary: "Explain why an attempt failed, and what to do",
	}, (*Service).explainAttempt)
	AttemptBundle = define(Spec{
		Name: "attempt bundle", Method: "GET", Path: "/attempts/{reference}/bundle", Roles: readers,
		Summary: "Write an attempt in a form that you can publish",
		Details: "Writes all that is recorded about an attempt, for example to report a bug of the client. Users,\n" +
			"addresses, ids, hosts and all texts that clients, users and providers chose are replaced by\n" +
			"placeholders. The same text gets the same placeholder.",
	}, (*Service).bundleAttempt)
)

// AttemptQuery returns the query for in. The client need not be registered: an unknown client may
// be the reason that the attempt failed.
func (s *Service) AttemptQuery(ctx context.Context, in AttemptsWanted) (q attempt.Query, err error) {
	if in.Reference != "" {
		reference, ok := attempt.ParseReference(in.Reference)
		if !ok {
			return q, fault(ErrInvalid, "%q must have eight or twelve letters and digits", in.Reference)
		}
		q.Reference = reference
	}
	if in.User != "" {
		u, err := s.FindUser(ctx, in.User)
		if err != nil {
			return q, err
		}
		q.Person = u.ID
	}
	if in.Client != "" {
		q.Client = in.Client
		if c, err := s.NamedClient(ctx, in.Client); err == nil {
			q.Client = c.ID
		}
		if !strings.HasSuffix(in.Client, CutMark) { // several clients may share a name, and most have no row
			q.ClientName = in.Client
		}
	}
	if in.Application != "" {
		of, err := s.registrationsOf(ctx, in.Application)
		if errors.Is(err, ErrNotFound) {
			err = fault(ErrNotFound, "nobody has approved an application %q: look for its client, by name or id", in.Application)
		}
		if err != nil {
			return q, err
		}
		q.Of = of.has
		stored, err := s.Store.ApplicationClients(ctx, of.key, "", attempt.MaxClients)
		if err != nil {
			return q, err
		}
		for _, c := range stored {
			q.Clients = append(q.Clients, c.ID)
		}
	}
	if in.Address != "" {
		addr, err := netip.ParseAddr(in.Address)
		if err != nil {
			return q, fault(ErrInvalid, "%q is not an IP address", in.Address)
		}
		q.Address = addr.Unmap().WithZone("").String()
	}
	q.From, q.Until = in.Since, in.Until
	return q, nil
}

func (s *Service) listAttempts(ctx context.Context, in AttemptsWanted) (Page[attempt.Attempt], error) {
	limit := cmp.Or(in.Limit, 50)
	if limit < 1 || limit > maxAttempts {
		return Page[attempt.Attempt]{}, fault(ErrInvalid, "the limit is not between 1 and %d", maxAttempts)
	}
	q, err := s.AttemptQuery(ctx, in)
	if err != nil {
		return Page[attempt.Attempt]{}, err
	}
	found, err := s.Attempts.Find(ctx, q)
	if in.Failed {
		found = slices.DeleteFunc(found, func(t attempt.Attempt) bool { return t.Fault == "" })
	}
	found = append([]attempt.Attempt{}, found[:min(len(found), limit)]...)
	s.nameAttempts(ctx, found)
	return Page[attempt.Attempt]{Items: found}, err
}

// nameAttempts adds names where a step recorded only IDs, such as a refresh.
func (s *Service) nameAttempts(ctx context.Context, found []attempt.Attempt) {
	names := s.Names()
	for i := range found {
		a := &found[i]
		if strings.HasPrefix(a.Person, identifier.User) {
			a.Person = names.User(ctx, a.Person)
		}
		if a.ClientName == "" && a.ClientID != "" {
			if name := names.Client(ctx, a.ClientID); name != a.ClientID {
				a.ClientName = name
			}
		}
	}
}

func (s *Service) showAttempt(ctx context.Context, in AttemptReference) (AttemptDetails, error) {
	v, err := s.FindAttempt(ctx, in.Reference)
	return AttemptDetails{v, v.Steps, v.LeftOut}, err
}

func (s *Service) explainAttempt(ctx context.Context, in AttemptReference) (attempt.Attempt, error) {
	return s.FindAttempt(ctx, in.Reference)
}

func (s *Service) bundleAttempt(ctx context.Context, in AttemptReference) (attempt.Bundle, error) {
	found, err := s.FindAttempt(ctx, in.Reference)
	if err != nil {
		return attempt.Bundle{}, err
	}
	known, err := s.Resources(ctx)
	if err != nil {
		return attempt.Bundle{}, err
	}
	own := []string{s.Config.Issuer}
	for _, r := range known {
		own = append(append(own, r.URI), r.Aliases...)
	}
	return attempt.Publish(found, s.Version, own), nil
}

// FindAttempt finds an attempt by the reference of one of its steps.
func (s *Service) FindAttempt(ctx context.Context, typed string) (attempt.Attempt, error) {
	reference, ok := attempt.ParseReference(typed)
	if !ok {
		return attempt.Attempt{}, fault(ErrInvalid,
			"%q must have eight or twelve letters and digits, such as K7PX2M4Q", typed)
	}
	found, err := s.Attempts.Find(ctx, attempt.Query{Reference: reference})
	switch {
	case err != nil:
		return attempt.Attempt{}, err
	case len(found) == 0:
		return attempt.Attempt{}, fault(ErrNotFound, "no attempt has the reference %s: it is older than attempts.keep, "+
			"or its server has not stored it yet, which takes a second", reference)
	}
	s.nameAttempts(ctx, found[:1])
	return found[0], nil
}
