package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/lab"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/signin"
)

// labTime limits a run, including the time of users who sign in.
const labTime = 15 * time.Minute

func newLabCommand(s std) *cobra.Command {
	var o lab.Options
	var withPerson, noBrowser, asJSON bool
	var secretFile string
	c := &cobra.Command{
		Use: "lab ISSUER", Short: "Test any authorization server against the requirements of MCP",
		Long: "Tests an authorization server: reads its metadata, registers clients with it, and sends correct and\n" +
			"wrong requests to each endpoint. Prints the result for each requirement, and exits with 1 if a MUST\n" +
			"requirement fails. It deletes the clients if the server supports that (RFC 7592).\n\n" +
			"It tests servers on this machine, and other servers that publish the line \"mcp-authd lab until DATE\"\n" +
			"(the last day, such as 2026-12-31) at " + lab.Consent + ". It sends one request at a time, 200 at most.\n\n" +
			"--sign-in also tests codes and tokens: it opens the browser several times for you to sign in.",
		Example: "  mcp-authd lab http://127.0.0.1:8414\n" +
			"  mcp-authd lab https://auth.example.com --sign-in --resource https://mcp.example.com/mcp",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), labTime)
			defer cancel()
			if (o.ClientID == "") != (o.RedirectURI == "") {
				return usageError{errors.New("--client and --redirect-uri go together"), c.CommandPath()}
			}
			if secretFile != "" {
				secret, err := os.ReadFile(secretFile)
				if err != nil {
					return err
				}
				o.ClientSecret = strings.TrimSpace(string(secret))
			}
			if withPerson {
				back, err := signin.Listen()
				if err != nil {
					return err
				}
				defer back.Close()
				o.RedirectURI = cmp.Or(o.RedirectURI, back.URI)
				o.Visit = func(ctx context.Context, at string) (*url.URL, error) {
					return s.visit(ctx, back, at, noBrowser)
				}
			}
			r, err := lab.Run(ctx, args[0], o)
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(s.out, r)
			} else {
				err = printLab(s.out, r)
			}
			if err == nil && r.Failed() {
				return errSilent
			}
			return err
		},
	}
	c.Flags().StringVar(&o.ClientID, "client", "", "a registered client, for servers without client registration")
	c.Flags().StringVar(&secretFile, "client-secret-file", "", "file with its secret, if it has one")
	c.Flags().StringVar(&o.RedirectURI, "redirect-uri", "", "the redirect URI of that client, on loopback")
	c.Flags().StringVar(&o.Resource, "resource", "", "the MCP server to request tokens for")
	c.Flags().BoolVar(&withPerson, "sign-in", false, "also test codes and tokens: you sign in with a browser")
	c.Flags().BoolVar(&noBrowser, "no-browser", false, "with --sign-in: print the links instead of opening a browser")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// visit makes the user sign in, and returns the URL of the callback.
func (s std) visit(ctx context.Context, back *signin.Callback, at string, noBrowser bool) (*url.URL, error) {
	fmt.Fprintf(s.err, "Sign in, and allow it: %s\n", at)
	if !noBrowser {
		openBrowser(ctx, at)
	}
	values, err := back.Await(ctx)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(back.URI)
	if err == nil {
		u.RawQuery = values.Encode()
	}
	return u, err
}

// printLab prints a line for each check, and a summary.
func printLab(out io.Writer, r lab.Report) error {
	marks := map[lab.Verdict]string{lab.Pass: "✓", lab.Fail: "✗", lab.Skipped: "-"}
	for _, x := range r.Results {
		mark := marks[x.Verdict]
		if x.Verdict == lab.Fail && !x.Failed() { // a SHOULD
			mark = "!"
		}
		if _, err := fmt.Fprintf(out, "%s %-6s %-6s %s\n", mark, x.Requirement, x.Level, x.What); err != nil {
			return err
		}
		if x.Why != "" {
			fmt.Fprintf(out, "                %s\n", label.Printable(x.Why))
		}
	}
	_, err := fmt.Fprintf(out, "%s: %d passed, %d failed, %d skipped (%s)\n", label.Printable(r.Issuer),
		r.Count(lab.Pass), r.Count(lab.Fail), r.Count(lab.Skipped), label.Count(r.Requests, "request", "requests"))
	return err
}
