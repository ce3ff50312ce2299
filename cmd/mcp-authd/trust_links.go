package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// trustLinksShown limits the links that trust show prints, because an issuer may know a whole
// company.
const trustLinksShown = 100

// nameFlags selects one of a user's names.
type nameFlags struct{ tenant, saml string }

func (f *nameFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.tenant, "tenant", "", "tenant at the issuer, as in the claim tenant")
	c.Flags().StringVar(&f.saml, "saml-issuer", "", "SUBJECT is a name identifier of this SAML issuer of the entry")
}

// person parses ENTRY USER [SUBJECT].
func (f *nameFlags) person(args []string) (admin.PersonOfIssuer, error) {
	p := admin.PersonOfIssuer{ID: args[0], User: args[1], Tenant: f.tenant, SAMLIssuer: f.saml}
	if len(args) == 3 {
		if p.Subject = args[2]; p.Subject == "" {
			return p, errors.New("SUBJECT is empty")
		}
	}
	return p, nil
}

func newTrustLink(s std) *cobra.Command {
	var f nameFlags
	var asJSON bool
	return callerCommand(s, admin.TrustLinkTo, &cobra.Command{
		Use: "ENTRY USER [SUBJECT]", Args: cobra.RangeArgs(2, 3),
		Example: "company alice 00u1a2b3c4\ncompany alice 00u1a2b3c4 --tenant acme\n" +
			"company alice alice@company.com --saml-issuer https://saml.company.com",
	}, func(c *cobra.Command) {
		f.add(c)
		c.Flags().BoolVar(&asJSON, "json", false, "print the link as JSON")
	}, func(c *cobra.Command, by admin.Caller, args []string) error {
		p, err := f.person(args)
		if err != nil {
			return err
		}
		l, err := admin.TrustLinkTo.Do(c.Context(), by, p)
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(s.out, l)
		}
		_, err = fmt.Fprintf(s.out, "linked %s of %s to %s\n", printable(l.Subject), p.ID, printable(l.UserName))
		return err
	})
}

func newTrustUnlink(s std) *cobra.Command {
	var sure confirmation
	var f nameFlags
	var asJSON bool
	return callerCommand(s, admin.TrustUnlink, &cobra.Command{
		Use: "ENTRY USER [SUBJECT]", Args: cobra.RangeArgs(2, 3),
		Example: "company alice\ncompany alice 00u1a2b3c4 --tenant acme",
	}, func(c *cobra.Command) {
		f.add(c)
		sure.add(c)
		c.Flags().BoolVar(&asJSON, "json", false, "print the removed links as JSON")
	}, func(c *cobra.Command, by admin.Caller, args []string) error {
		p, err := f.person(args)
		if err != nil {
			return err
		}
		u, err := admin.UserShow.Do(c.Context(), by, admin.UserName{Name: p.User})
		if err != nil {
			return err
		}
		if err := sure.ask(s, "This ends each grant of "+u.Name+" that rests on assertions."); err != nil {
			return err
		}
		gone, err := admin.TrustUnlink.Do(c.Context(), by, p)
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(s.out, gone.Items)
		}
		for _, l := range gone.Items {
			if _, err := fmt.Fprintf(s.out, "unlinked %s of %s from %s\n", printable(l.Subject), p.ID,
				printable(l.UserName)); err != nil {
				return err
			}
		}
		return nil
	})
}

// linkRows describes links, and says if there are more.
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
