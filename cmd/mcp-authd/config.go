package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func newConfigCommand(s std) *cobra.Command {
	return group("config", "Check and print the configuration", newConfigValidate(s), newConfigPrint(s),
		newConfigSchema(s))
}

// verdict is the output of config validate --json.
type verdict struct {
	Valid bool   `json:"valid"`
	File  string `json:"file,omitempty"`
	Error string `json:"error,omitempty"`
	// Warnings lists problems that serve tolerates.
	Warnings []string `json:"warnings,omitempty"`
}

func newConfigValidate(s std) *cobra.Command {
	var where settings
	var asJSON bool
	c := &cobra.Command{
		Use: "validate", Short: "Check the configuration", Args: cobra.NoArgs,
		Example: "  mcp-authd config validate --config mcp-authd.yaml",
		Long: "Checks the configuration as serve does: keys and values, the secret key, certificate and key of TLS,\n" +
			"clients, providers and gateways. An unknown variable MCP_AUTHD_... is an error here; serve only\n" +
			"warns about it. The command creates nothing, and contacts neither the database nor other servers.",
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := where.load(s)
			if err == nil {
				err = errors.Join(a.meansNothing(), a.Rehearse(c.Context()))
			}
			if asJSON {
				return reportVerdict(s, a, err)
			}
			if err != nil {
				return err
			}
			for _, what := range a.ruleWarnings() {
				fmt.Fprintln(s.err, "mcp-authd:", what)
			}
			_, err = fmt.Fprintf(s.out, "the configuration is valid (%s)\n", a.Source())
			return err
		},
	}
	where.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func reportVerdict(s std, a *app, err error) error {
	v := verdict{Valid: err == nil}
	if a != nil {
		v.File, v.Warnings = a.Config.File, a.ruleWarnings()
	}
	if err != nil {
		v.Error = err.Error()
	}
	if err := printJSON(s.out, v); err != nil {
		return err
	}
	if !v.Valid {
		return errSilent
	}
	return nil
}

// meansNothing returns an error if unknown variables with our prefix are set. serve only warns
// about them, because a variable for another version should not keep it down. config validate
// reports them as errors.
func (a *app) meansNothing() error {
	if len(a.Config.Warnings) == 0 {
		return nil
	}
	return errors.New(strings.Join(a.Config.Warnings, "\n") + "; correct the name, or unset it")
}

// ruleWarnings reports configured access rules that admit nobody or everybody. It does not read the
// database, which holds groups and rules set by command. It assumes that every group has a member.
func (a *app) ruleWarnings() (out []string) {
	var groups []storage.Group
	rules := a.Config.AccessRules()
	for _, r := range rules {
		groups = append(groups, storage.Group{Name: r.Group, Members: 1})
	}
	for _, what := range admin.RuleFindings(rules, groups, a.Config.StorageResources()) {
		out = append(out, "resources[].access: "+what+", unless rules set by command say otherwise")
	}
	return out
}

func newConfigPrint(s std) *cobra.Command {
	var where settings
	var origin, asJSON bool
	c := &cobra.Command{
		Use: "print", Short: "Print every setting, secrets masked", Args: cobra.NoArgs,
		Example: "  mcp-authd config print --origin",
		RunE: func(*cobra.Command, []string) error {
			a, err := where.load(s)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, a.Config.Values())
			}
			a.Config.Print(s.out, origin)
			return nil
		},
	}
	where.add(c)
	c.Flags().BoolVar(&origin, "origin", false, "show the source of each value")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newConfigSchema(s std) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON schema of the configuration file", Args: cobra.NoArgs,
		Example: "  mcp-authd config schema > mcp-authd.schema.json",
		Long: "Prints the JSON schema of the configuration file. An editor with a YAML language server reads it\n" +
			"from a first line \"# yaml-language-server: $schema=mcp-authd.schema.json\". The schema contains keys,\n" +
			"types, choices and defaults; config validate also checks keys against each other.",
		RunE: func(*cobra.Command, []string) error {
			_, err := s.out.Write(config.Schema())
			return err
		},
	}
}
