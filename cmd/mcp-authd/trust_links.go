package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/trust"
)

// trustLinksShown is how many links trust show prints: an issuer may know a whole company.
const trustLinksShown = 100

// trustLinks are up to limit people of an entry. userID "" is for those of any account.
func (a *app) trustLinks(ctx context.Context, e storage.TrustEntry, userID string) ([]storage.TrustLink, error) {
	service, err := a.admin()
	if err != nil {
		return nil, err
	}
	return service.TrustLinks(ctx, e, userID)
}

// peopleEntry is an entry, with what its preset sets, whose issuer knows people.
func (a *app) peopleEntry(ctx context.Context, id string) (storage.TrustEntry, error) {
	e, err := a.trustEntry(ctx, id)
	if err != nil {
		return e, err
	}
	full, err := trust.Check(e)
	switch {
	case err != nil:
		return e, fmt.Errorf("%s is not used: %w", e.ID, err)
	case full.Kind != storage.TrustEnterprise:
		return e, fmt.Errorf("%s is about programs: only an enterprise entry has people", e.ID)
	}
	return full, nil
}

// nameFlags say which of the names of a person is meant.
type nameFlags struct{ tenant, saml string }

func (f *nameFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.tenant, "tenant", "", "tenant at the issuer, as the claim tenant has it")
	c.Flags().StringVar(&f.saml, "saml-issuer", "", "SUBJECT is a name identifier of this SAML issuer of the entry")
}

// name is what the issuer calls the person: by subject, or, without one, by the account here.
func (f *nameFlags) name(e storage.TrustEntry, userID string, args []string) (storage.TrustName, error) {
	n := storage.TrustName{Issuer: e.Issuer, Tenant: f.tenant, Kind: storage.TrustAccount, Subject: userID}
	if len(args) == 3 {
		n.Kind, n.Subject = storage.TrustSubject, args[2]
	}
	switch {
	case n.Subject == "" || len(n.Subject) > trust.MaxText || len(n.Tenant) > trust.MaxText:
		return n, fmt.Errorf("SUBJECT or --tenant is empty, or longer than %d bytes", trust.MaxText)
	case f.saml == "":
		return n, nil
	case n.Kind == storage.TrustAccount || f.tenant != "":
		return n, errors.New("--saml-issuer needs SUBJECT, and goes without --tenant")
	case !slices.Contains(e.SAMLIssuers, f.saml):
		return n, fmt.Errorf("%s may not name people of %q: see saml_issuers", e.ID, printable(f.saml))
	}
	return storage.TrustName{Issuer: f.saml, Kind: storage.TrustSAML, Subject: n.Subject}, nil
}

func newTrustLink(s std) *cobra.Command {
	var f nameFlags
	return storeCommand(s, &cobra.Command{
		Use: "link ENTRY USER [SUBJECT]", Short: "Say which account a person of an issuer has",
		Args: cobra.RangeArgs(2, 3),
		Long: "Links what an issuer calls a person (sub) to an account. Its assertions about that person are then for\n" +
			"that account, before every other rule by which people are found. Without SUBJECT the issuer may name the\n" +
			"person by the account here (aud_sub). The link is to the issuer, so it holds for each entry with it, of\n" +
			"the store or of the configuration, and stays when the entry is removed.",
		Example: "  mcp-authd trust link company alice 00u1a2b3c4\n" +
			"  mcp-authd trust link company alice 00u1a2b3c4 --tenant acme\n" +
			"  mcp-authd trust link company alice alice@company.com --saml-issuer https://saml.company.com",
	}, f.add, func(c *cobra.Command, a *app, args []string) error {
		e, err := a.peopleEntry(c.Context(), args[0])
		if err != nil {
			return err
		}
		u, err := a.person(c.Context(), args[1])
		if err != nil {
			return err
		}
		n, err := f.name(e, u.ID, args)
		if err != nil {
			return err
		}
		err = a.store.LinkTrust(c.Context(), storage.TrustLink{
			TrustName: n, UserID: u.ID, By: storage.LinkedByOperator, CreatedAt: time.Now(),
		})
		if errors.Is(err, storage.ErrExists) {
			return fmt.Errorf("%s is linked to another account, see: mcp-authd trust show %s; nothing was changed",
				printable(n.Subject), e.ID)
		}
		if err != nil {
			return err
		}
		a.audit.Record(c.Context(), audit.TrustLinked, audit.Person(u.ID, u.Name), slog.String("trust", e.ID),
			slog.String("by", string(storage.LinkedByOperator)))
		_, err = fmt.Fprintf(s.out, "linked %s of %s to %s\n", printable(n.Subject), e.ID, printable(u.Name))
		return err
	})
}

func newTrustUnlink(s std) *cobra.Command {
	var sure confirmation
	var f nameFlags
	return storeCommand(s, &cobra.Command{
		Use: "unlink ENTRY USER [SUBJECT]", Short: "Undo what links a person of an issuer to an account",
		Args: cobra.RangeArgs(2, 3),
		Long: "Unlinks what an issuer calls a person from an account; without SUBJECT, each of its names. It also ends\n" +
			"every grant of the account that rests on assertions, those of other issuers too: their programs ask again.\n" +
			"Grants that the person made, sessions, and what the person allowed stay. An entry does not create the\n" +
			"person again, but by email_domains the issuer can find the account once more. Asks on a terminal.",
		Example: "  mcp-authd trust unlink company alice\n  mcp-authd trust unlink company alice 00u1a2b3c4 --tenant acme",
	}, func(c *cobra.Command) {
		f.add(c)
		sure.add(c)
	}, func(c *cobra.Command, a *app, args []string) error {
		e, err := a.peopleEntry(c.Context(), args[0])
		if err != nil {
			return err
		}
		u, err := a.person(c.Context(), args[1])
		if err != nil {
			return err
		}
		names, err := a.linkedNames(c.Context(), e, u, f, args)
		if err != nil {
			return err
		}
		err = sure.ask(s, "This ends each grant of "+printable(u.Name)+" that rests on assertions.")
		if err != nil {
			return err
		}
		for _, n := range names {
			if _, err := a.store.UnlinkTrust(c.Context(), n, time.Now()); err != nil {
				return err
			}
			a.audit.Record(c.Context(), audit.TrustUnlinked, audit.Person(u.ID, u.Name), slog.String("trust", e.ID),
				slog.String("by", string(storage.LinkedByOperator)))
			if _, err := fmt.Fprintf(s.out, "unlinked %s of %s from %s\n", printable(n.Subject), e.ID,
				printable(u.Name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// linkedNames are the names of a person at the issuer that are meant, which are all of them without a subject.
func (a *app) linkedNames(
	ctx context.Context, e storage.TrustEntry, u storage.User, f nameFlags, args []string,
) (out []storage.TrustName, err error) {
	all, err := a.trustLinks(ctx, e, u.ID)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if (len(args) < 3 || l.Subject == args[2]) && (f.tenant == "" || l.Tenant == f.tenant) &&
			(f.saml == "" || l.Kind == storage.TrustSAML && l.Issuer == f.saml) {
			out = append(out, l.TrustName)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no such link to %s, see: mcp-authd user identities %s; nothing was changed",
			printable(u.Name), e.ID, printable(u.Name))
	}
	return out, nil
}

// linkRows are links in words, and whether there are more.
func linkRows(all []admin.TrustLink) (out [][2]string) {
	for _, l := range all[:min(len(all), trustLinksShown)] {
		of := []string{l.Subject, "is", cmp.Or(l.UserName, l.User) + ",", "by", string(l.By)}
		if l.Tenant != "" {
			of = slices.Insert(of, 1, "of tenant", l.Tenant)
		}
		out = append(out, [2]string{"person", strings.Join(of, " ")})
	}
	if len(all) > trustLinksShown {
		out = append(out, [2]string{"person", "and more: trust show --json has up to a thousand"})
	}
	return out
}
