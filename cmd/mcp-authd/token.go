package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func newTokenCommand(s std) *cobra.Command {
	return group("token", "Show tokens", newTokenInspect(s))
}

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
	c.Long += " Without an argument it\nis read from standard input, where no other user of the machine sees it. " +
		"Ends with 1 when the token is\nnot active."
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
		"issued", moment(time.Unix(c.IssuedAt, 0)), "expires", moment(time.Unix(c.Expires, 0)), "grant", c.GrantID,
		"token id", c.TokenID,
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
