package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

func newApplicationCommand(s std) *cobra.Command {
	return group("application", "Manage applications, each with all of its registrations",
		newApplicationList(s), newApplicationShow(s),
		newApplicationChange(s, admin.ApplicationRevoke, "revoked", "ends what it was granted"),
		newApplicationChange(s, admin.ApplicationBlock, "blocked", "ends what it was granted, and lets it in no more"),
		newApplicationChange(s, admin.ApplicationUnblock, "unblocked", ""),
		newApplicationChange(s, admin.ApplicationPause, "paused", "keeps everything from it until it is resumed"),
		newApplicationChange(s, admin.ApplicationResume, "resumed", ""),
		newApplicationChange(s, admin.ApplicationDelete, "deleted", "deletes its registrations, and ends what it was granted"),
		newApplicationMerge(s),
		newApplicationChange(s, admin.ApplicationSplit, "split", ""),
	)
}

func newApplicationList(s std) *cobra.Command {
	var asJSON bool
	var match string
	return callerCommand(s, admin.ApplicationList, &cobra.Command{
		Args: cobra.NoArgs, Example: "--json\n--match claude",
	}, func(c *cobra.Command) {
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
		matchFlag(c, &match, "name or ID")
	}, func(c *cobra.Command, by admin.Caller, _ []string) error {
		all, err := admin.Everything(func(p admin.Paging) (admin.Page[admin.Application], error) {
			return admin.ApplicationList.Do(c.Context(), by, admin.Searched{Match: match, Paging: p})
		})
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(s.out, all)
		}
		t := newTable(s.out, "ID", "NAME", "AT", "PEOPLE", "GRANTS", "REGISTRATIONS", "LAST USED", "STATE")
		for _, a := range all {
			name, more := a.Name, ""
			if !a.Verified {
				name += " (unverified)"
			}
			if a.More {
				more = "+"
			}
			t.row(a.ID, name, strings.Join(a.Places, " "), fmt.Sprint(a.People, more), fmt.Sprint(a.Grants, more),
				fmt.Sprint(a.Registrations), label.Moment(a.LastUsedAt), a.State)
		}
		return t.flush()
	})
}

func newApplicationShow(s std) *cobra.Command {
	return callerCommand(s, admin.ApplicationShow, &cobra.Command{
		Use: "ID", Example: "app_...\nClaude", Args: cobra.ExactArgs(1),
	}, func(c *cobra.Command) { c.Flags().Bool("json", true, "print JSON, as it always does") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			v, err := admin.ApplicationShow.Do(c.Context(), by, admin.ApplicationID{ID: args[0]})
			if err != nil {
				return err
			}
			return printJSON(s.out, v)
		})
}

// newApplicationChange returns the command for a change of one application. It asks for
// confirmation if the change takes something away.
func newApplicationChange(
	s std, o admin.Operation[admin.ApplicationID, admin.Application], done, consequence string,
) *cobra.Command {
	var sure confirmation
	var out answering
	add := out.add
	if consequence != "" {
		add = flags(sure.add, out.add)
	}
	return callerCommand(s, o, &cobra.Command{
		Use: "ID", Args: cobra.ExactArgs(1), Example: "app_...",
	}, add, func(c *cobra.Command, by admin.Caller, args []string) error {
		id := admin.ApplicationID{ID: args[0]}
		if consequence != "" {
			v, err := admin.ApplicationShow.Do(c.Context(), by, id)
			if err != nil {
				return err
			}
			if err := sure.ask(s, fmt.Sprintf("This %s: %s.", consequence, ofApplication(v.Application))); err != nil {
				return err
			}
			id.ID = v.ID
		}
		v, err := o.Do(c.Context(), by, id)
		if err != nil {
			return err
		}
		return out.print(s, v, "%s: %s", done, ofApplication(v))
	})
}

// ofApplication describes an application with its grants and registrations.
func ofApplication(a admin.Application) string {
	return cmp.Or(a.Name, a.ID) + " (" + strings.Join(a.Places, ", ") + "), " +
		ofPeople(admin.GrantCount{Grants: a.Grants, People: a.People, More: a.More}) + ", " +
		label.Count(a.Registrations, "registration", "registrations")
}

func newApplicationMerge(s std) *cobra.Command {
	var sure confirmation
	var out answering
	show := func(ctx context.Context, by admin.Caller, id string) (admin.ApplicationDetails, error) {
		return admin.ApplicationShow.Do(ctx, by, admin.ApplicationID{ID: id})
	}
	return callerCommand(s, admin.ApplicationMerge, &cobra.Command{
		Use: "ID INTO", Args: cobra.ExactArgs(2), Example: "app_... app_...",
	}, flags(sure.add, out.add), func(c *cobra.Command, by admin.Caller, args []string) error {
		a, err := show(c.Context(), by, args[0])
		if err != nil {
			return err
		}
		into, err := show(c.Context(), by, args[1])
		if err != nil {
			return err
		}
		if err := sure.ask(s, fmt.Sprintf("This makes one application of %s, and %s.", ofApplication(a.Application),
			ofApplication(into.Application))); err != nil {
			return err
		}
		v, err := admin.ApplicationMerge.Do(c.Context(), by,
			admin.ApplicationPair{ApplicationID: admin.ApplicationID{ID: args[0]}, Into: args[1]})
		if err != nil {
			return err
		}
		return out.print(s, v, "merged: %s", ofApplication(v))
	})
}
