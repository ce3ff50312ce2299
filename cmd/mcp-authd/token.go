package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/mcpclient"
	"github.com/mcp-authd/mcp-authd/mcpclient/keychain"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// tokenFlags holds the flags of token and token logout.
type tokenFlags struct {
	signInFlags
	asJSON         bool
	account, store string
	clientID       string
	scopes         []string
}

func newTokenCommand(s std) *cobra.Command {
	var f tokenFlags
	c := &cobra.Command{
		Use:   "token MCP_URL",
		Short: "Print an access token for an MCP server",
		Long: "Prints a valid access token of the user for an MCP server. The user signs in the first time, and when the\n" +
			"sign-in has ended. The sign-in is kept in the system's keychain, or, without one, in a file that only the\n" +
			"user may read. Instructions for the user are on standard error.",
		Example: "  mcp-authd token https://mcp.example.com/mcp\n" +
			"  curl -H \"Authorization: Bearer $(mcp-authd token https://mcp.example.com/mcp)\" " +
			"https://mcp.example.com/mcp",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := f.person(s, args[0])
			if err != nil {
				return usageError{err, c.CommandPath()}
			}
			t, err := p.Token(c.Context())
			if errors.Is(err, mcpclient.ErrSignIn) {
				err = errors.New("sign in at a terminal first, or with --device or --no-browser")
			}
			if err != nil {
				return signInFailure(s, err)
			}
			if !f.asJSON {
				_, err = fmt.Fprintln(s.out, t.AccessToken)
				return err
			}
			return printJSON(s.out, map[string]any{
				"access_token": t.AccessToken, "token_type": t.TokenType, "scope": t.Extra("scope"),
				"expires_at": t.Expiry.UTC().Format(time.RFC3339),
			})
		},
	}
	f.add(c)
	c.Flags().BoolVar(&f.device, "device", false, "sign in with a code that you approve on another device")
	c.Flags().BoolVar(&f.noBrowser, "no-browser", false, "print the sign-in URL instead of opening a browser")
	c.Flags().StringVar(&f.clientID, "client-id", "", "use this client instead of registering one")
	c.Flags().StringSliceVar(&f.scopes, "scope", nil, "scopes to request (default: the scopes that the server asks for)")
	c.MarkFlagsMutuallyExclusive("device", "no-browser")
	c.AddCommand(newTokenInspect(s), newTokenLogout(s))
	return c
}

func (f *tokenFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&f.account, "account", "", "a name for one of several accounts at the server")
	c.Flags().StringVar(&f.store, "store", "", "keychain or file (default: the keychain, if there is one)")
}

// signInFailure prints the failure of a sign-in with its advice.
func signInFailure(s std, err error) error {
	var e *mcpclient.Error
	if !errors.As(err, &e) {
		return err
	}
	printFailure(s.err, &discovery.Error{Step: e.Step, Why: e.Why, Advice: e.Advice})
	return errSilent
}

func newTokenLogout(s std) *cobra.Command {
	var f tokenFlags
	c := &cobra.Command{
		Use:     "logout MCP_URL",
		Short:   "Revoke and delete the sign-in of token",
		Example: "  mcp-authd token logout https://mcp.example.com/mcp",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := f.person(s, args[0])
			if err != nil {
				return usageError{err, c.CommandPath()}
			}
			was, err := p.SignOut(c.Context())
			if err != nil {
				return signInFailure(s, err)
			}
			said := "signed out"
			if !was {
				said = "there was no sign-in at this server"
			}
			return answering{f.asJSON}.print(s, map[string]bool{"signed_out": was}, "%s", said)
		},
	}
	f.add(c)
	return c
}

// person returns the user who signs in to an MCP server.
func (f *tokenFlags) person(s std, mcpURL string) (*mcpclient.Person, error) {
	store, err := signInStore(s, f.store)
	if err != nil {
		return nil, err
	}
	return mcpclient.NewPerson(mcpclient.PersonConfig{
		Server:      mcpURL,
		ClientName:  "mcp-authd token",
		ClientID:    f.clientID,
		Store:       store,
		Account:     f.account,
		Scopes:      f.scopes,
		Device:      f.device,
		Unattended:  f.unattended(s),
		OpenBrowser: f.open,
		Ask:         func(_ context.Context, p mcpclient.Prompt) { fmt.Fprint(s.err, p) },
	})
}

// signInStore returns the store of users' sign-ins: the keychain, the file, or, for kind "", the
// keychain if there is one.
func signInStore(s std, kind string) (mcpclient.Store, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf("the sign-in cannot be kept: %w", err)
	}
	dir = filepath.Join(dir, "mcp-authd")
	files := mcpclient.FileStore(filepath.Join(dir, "token"))
	if kind == "" {
		kind = installation.Lookup(s.environ, envStore)
	}
	switch kind {
	case "file":
		return files, nil
	case "", "keychain":
		store, err := keychain.Open("mcp-authd", filepath.Join(dir, "keychain"))
		if err != nil && kind == "" {
			return files, nil
		}
		return store, err
	}
	return nil, fmt.Errorf("--store must be keychain or file, and not %q", kind)
}

// envStore selects the store of all commands, as --store does.
const envStore = "MCP_AUTHD_STORE"

func newTokenInspect(s std) *cobra.Command {
	var asJSON bool
	c := callerCommand(s, admin.TokenInspect, &cobra.Command{
		Use: "[TOKEN]", Args: cobra.MaximumNArgs(1), Example: "<token.txt\n--json <token.txt",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			token, err := readToken(s, args)
			if err != nil {
				return err
			}
			found, err := admin.TokenInspect.Do(c.Context(), by, admin.TokenText{Token: token})
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(s.out, found)
			} else {
				err = printInspection(s, found)
			}
			if err == nil && !found.Active {
				err = errSilent
			}
			return err
		})
	c.Long += " Without an argument, the\ncommand reads the token from standard input, where no other user of the machine sees it. " +
		"Exits with\n1 if the token is not active."
	return c
}

func readToken(s std, args []string) (string, error) {
	text := strings.Join(args, "")
	if text == "" || text == "-" {
		line, err := bufio.NewReader(s.in).ReadString('\n')
		if line == "" && err != nil {
			return "", errors.New("no token on standard input")
		}
		text = line
	}
	text = strings.TrimSpace(text)
	if scheme, rest, ok := strings.Cut(text, " "); ok &&
		(strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "DPoP")) {
		text = strings.TrimSpace(rest)
	}
	return text, nil
}

func printInspection(s std, i admin.TokenInspection) error {
	var c oauth.AccessTokenClaims
	if err := json.Unmarshal(i.Claims, &c); err != nil {
		return err
	}
	verdict := "yes"
	if !i.Active {
		verdict = "no"
	}
	printFields(s.out, "active", verdict)
	for _, w := range i.Why {
		printFields(s.out, "because", w)
	}
	printFields(s.out, "issuer", c.Issuer, "audience", c.Audience, "user", cmp.Or(i.UserName, c.Subject), "client",
		cmp.Or(i.ClientName, c.ClientID), "scope", c.Scope,
		"issued", label.Moment(time.Unix(c.IssuedAt, 0)), "expires", label.Moment(time.Unix(c.Expires, 0)),
		"grant", c.GrantID, "token id", c.TokenID,
		"key", i.Header.KeyID+" ("+i.Header.Algorithm+")")
	for _, actor := range c.Act.Chain() {
		by := actor.Name()
		if actor.NodeID != "" {
			by += " (" + actor.NodeID + ")"
		}
		printFields(s.out, "acting", by)
	}
	if c.Confirmation != nil {
		printFields(s.out, "bound to key", c.Confirmation.Thumbprint)
	}
	return nil
}
