// Command mcp-authd is an OAuth 2.1 authorization server for the Model Context Protocol.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/assembly"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/process"
	"github.com/mcp-authd/mcp-authd/internal/sandbox"
)

// The exit codes. Scripts rely on them.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	sandbox.Run() // if this process becomes the program of an MCP server
	process.BecomeInit()
	assembly.SettleMemory()
	ctx, stop := signal.NotifyContext(context.Background(), ends()...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills a process that hangs, for example on a pipe
	process.Hide()
	os.Exit(run(ctx, os.Args[1:], std{os.Stdin, os.Stdout, os.Stderr, os.Environ()}))
}

// ends returns the signals that stop a command. A closing terminal sends SIGHUP, which is ignored
// under nohup.
func ends() []os.Signal {
	if signal.Ignored(syscall.SIGHUP) {
		return []os.Signal{os.Interrupt, syscall.SIGTERM}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
}

// std is a command's access to the outside.
type std struct {
	in       io.Reader
	out, err io.Writer
	environ  []string
}

// run is main without the process around it.
func run(ctx context.Context, args []string, s std) int {
	root := newRootCommand(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(s.err, "mcp-authd: %s (see: %s --help)\n", label.Printable(label.FirstLine(err)), usage.command)
		return exitUsage
	case errors.Is(err, errSilent):
		return exitFailure
	}
	fmt.Fprintf(s.err, "mcp-authd: %s\n", label.PrintableLines(strings.TrimSpace(err.Error())))
	return exitFailure
}

// errSilent ends a command with a failure that was already reported.
var errSilent = errors.New("failed")

// usageError is returned for wrong use of a command.
type usageError struct {
	error
	command string
}

func newRootCommand(s std) *cobra.Command {
	root := &cobra.Command{
		Use:   "mcp-authd",
		Short: "Sign-in for MCP servers: an OAuth 2.1 authorization server",
		Long: "mcp-authd is an OAuth 2.1 authorization server for the Model Context Protocol.\n\n" +
			"Start with: mcp-authd demo",
		Version:      version().Version,
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetVersionTemplate("mcp-authd {{.Version}}\n")
	root.AddCommand(
		newDemoCommand(s), newServeCommand(s), newProtectCommand(s), newLoginCommand(s), newLogoutCommand(s),
		newCheckCommand(s), newLabCommand(s), newDoctorCommand(s),
		newUserCommand(s), newGroupCommand(s), newRuleCommand(s), newApplicationCommand(s), newClientCommand(s),
		newResourceCommand(s), newGrantCommand(s), newKeysCommand(s),
		newProposalCommand(s),
		newSecretCommand(s), newTokenCommand(s), newEventsCommand(s), newMailCommand(s), newTrustCommand(s),
		newAuditCommand(s),
		newAttemptCommand(s), newProviderCommand(s), newHealthCommand(s),
		newSetupLinkCommand(s), newMigrateCommand(s), newBackupCommand(s), newRestoreCommand(s),
		newExportCommand(s), newImportCommand(s), newConfigCommand(s),
		newHealthcheckCommand(s), newVersionCommand(s), newManCommand(),
	)
	refuseUnknownHelp(root)
	markUsageErrors(root)
	setHelp(root)
	return root
}

// refuseUnknownHelp makes help for an unknown command a usage error.
func refuseUnknownHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		return // never, because cobra has just added it
	}
	help.Use, help.Run = "help [COMMAND]...", nil
	help.RunE = func(_ *cobra.Command, args []string) error {
		c, rest, err := root.Find(args)
		if err == nil && c.HasSubCommands() && len(rest) > 0 {
			err = explainArgs(c, rest, nil)
		}
		if err != nil {
			return usageError{err, c.CommandPath()}
		}
		c.InitDefaultHelpFlag()
		return c.Help()
	}
}

// markUsageErrors turns wrong flags and arguments of every command into usage errors. It makes a
// command group without a subcommand show its help.
func markUsageErrors(c *cobra.Command) {
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{explainFlag(c, err), c.CommandPath()}
	})
	c.SuggestionsMinimumDistance = 2 // edits
	check := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if check == nil {
			check = cobra.ArbitraryArgs
		}
		if err := check(c, args); err != nil {
			return usageError{explainArgs(c, args, err), c.CommandPath()}
		}
		return nil
	}
	for _, sub := range c.Commands() {
		markUsageErrors(sub)
	}
}

// explainFlag finds a program's flags among ours.
func explainFlag(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); c.Name() == "protect" && noURL(args) {
		return explainNoURL(args, " ...")
	}
	return err
}

// explainArgs describes the wanted arguments, instead of the number of given ones.
func explainArgs(c *cobra.Command, args []string, err error) error {
	_, want, _ := strings.Cut(c.Use, " ")
	switch {
	case c.Name() == "protect" && c.ArgsLenAtDash() < 0 && noURL(args):
		return explainNoURL(args, "")
	case c.HasSubCommands() && len(args) > 0:
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			return fmt.Errorf("unknown command %q for %q; did you mean %s?", args[0], c.CommandPath(),
				strings.Join(near, " or "))
		}
		return fmt.Errorf("unknown command %q for %q; there are: %s", args[0], c.CommandPath(),
			strings.Join(subcommands(c), ", "))
	case want != "":
		return fmt.Errorf("it is used as %s %s, not with %s", c.CommandPath(), want,
			label.Count(len(args), "argument", "arguments"))
	case len(args) > 0:
		return fmt.Errorf("%s takes no arguments, not %q", c.CommandPath(), args[0])
	}
	return err
}

func subcommands(c *cobra.Command) (names []string) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// group returns a command that only contains others.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return usageError{
				fmt.Errorf("a subcommand is needed: %s", strings.Join(subcommands(c), ", ")), c.CommandPath(),
			}
		},
	}
	c.AddCommand(subs...)
	return c
}
