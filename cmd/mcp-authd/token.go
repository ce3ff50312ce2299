package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/keys"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

func newTokenCommand(s std) *cobra.Command {
	return group("token", "Look at tokens", newTokenInspect(s))
}

// tokenHeader are the members of a JOSE header that are shown.
type tokenHeader struct {
	Algorithm string `json:"alg,omitempty"`
	KeyID     string `json:"kid,omitempty"`
	Type      string `json:"typ,omitempty"`
}

// inspection is what is found out about a token. The token itself is not part of it.
type inspection struct {
	Active bool            `json:"active"`
	Why    []string        `json:"why,omitempty"` // it is not
	Header tokenHeader     `json:"header"`
	Claims json.RawMessage `json:"claims,omitempty"`

	claims oauth.AccessTokenClaims
}

func newTokenInspect(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "inspect [TOKEN]", Short: "Show an access token, and why it is refused", Args: cobra.MaximumNArgs(1),
		Long: "Decodes an access token, verifies it with the keys of this installation, and says why it is not accepted:\n" +
			"another issuer, an unknown key, expired, its grant revoked, its user disabled, its client deleted, a helper\n" +
			"cut. It also shows who acts, and the key that the token is bound to. Without an argument the token is read\n" +
			"from standard input, where no other user of the machine sees it. It is never printed. Ends with 1 when the\n" +
			"token is not active.",
		Example: "  mcp-authd token inspect <token.txt\n  pbpaste | mcp-authd token inspect --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, args []string) error {
			token, err := readToken(s, args)
			if err != nil {
				return err
			}
			found, err := a.inspect(c.Context(), token)
			if err != nil {
				return err
			}
			if err := found.print(c.Context(), s, a.names(), asJSON); err != nil {
				return err
			}
			if !found.Active {
				return errSilent
			}
			return nil
		})
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

func (a *app) inspect(ctx context.Context, token string) (inspection, error) {
	found, err := decode(token)
	if err != nil {
		return found, err
	}
	why := func(format string, args ...any) { found.Why = append(found.Why, fmt.Sprintf(format, args...)) }
	issuer, err := a.knownIssuer(ctx)
	if err != nil {
		return found, err
	}
	if found.claims.Issuer != issuer {
		why("it is of the issuer %q, and this server is %q", found.claims.Issuer, issuer)
	}
	if err := a.verify(ctx, token, found.Header, why); err != nil {
		return found, err
	}
	now := time.Now()
	if expires := time.Unix(found.claims.Expires, 0); !now.Before(expires) {
		why("it has expired, at %s", moment(expires))
	}
	if issued := time.Unix(found.claims.IssuedAt, 0); now.Add(time.Minute).Before(issued) {
		why("it is of the future (%s): are the clocks right?", moment(issued))
	}
	if err := a.standing(ctx, found.claims, now, why); err != nil {
		return found, err
	}
	found.Active = len(found.Why) == 0
	return found, nil
}

// knownIssuer is the one of the configuration or, where none names it, of the last start.
func (a *app) knownIssuer(ctx context.Context) (string, error) {
	if !a.config.IsDefault("issuer") {
		return a.config.Issuer, nil
	}
	last, err := a.store.Remember(ctx, "issuer", nil)
	if err != nil || len(last) == 0 {
		return a.config.Issuer, err
	}
	return string(last), nil
}

// decode reads a JWT without believing it.
func decode(token string) (found inspection, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return found,
			errors.New("this is no access token of mcp-authd, which is a JWT: three parts with dots between them (refresh tokens and codes are not looked into)")
	}
	for i, into := range []any{&found.Header, &found.Claims} {
		b, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err == nil {
			err = json.Unmarshal(b, into)
		}
		if err != nil {
			return found, fmt.Errorf("part %d of the token is not JSON in base64url: is it complete?", i+1)
		}
	}
	if err := json.Unmarshal(found.Claims, &found.claims); err != nil {
		return found, errors.New("the claims are not those of an access token of mcp-authd")
	}
	return found, nil
}

// verify says why the signature does not count.
func (a *app) verify(ctx context.Context, token string, h tokenHeader, why func(string, ...any)) error {
	if h.Type != oauth.AccessTokenType {
		why("its type is %q, and an access token has %q", h.Type, oauth.AccessTokenType)
	}
	published, err := a.store.Keys(ctx, time.Now())
	if err != nil {
		return err
	}
	active, known := false, false
	for _, k := range published {
		active = active || k.State == storage.KeyActive && k.Algorithm == a.config.Tokens.Algorithm
		known = known || k.ID == h.KeyID
	}
	switch {
	case !known:
		why("its key %q is not published here: another installation made it, or the key was revoked or has expired; see: mcp-authd keys list",
			h.KeyID)
		return nil
	case !active:
		return errors.New("no signing key is active: start the server first") // a manager would make one
	}
	m, err := a.keyManager(ctx)
	if err != nil {
		return err
	}
	switch _, err := m.Verify(ctx, token, h.Type); {
	case errors.Is(err, keys.ErrVerify):
		why("its signature is not that of the key %s: it was changed, or cut", h.KeyID)
	case err != nil:
		return err
	}
	return nil
}

// standing says why what the token rests on does not.
func (a *app) standing(ctx context.Context, c oauth.AccessTokenClaims, now time.Time, why func(string, ...any)) error {
	if _, err := a.store.Client(ctx, c.ClientID); errors.Is(err, storage.ErrRevoked) {
		why("its client %s was deleted", c.ClientID)
	}
	if strings.HasPrefix(c.Subject, "usr_") {
		switch u, err := a.store.User(ctx, c.Subject); {
		case errors.Is(err, storage.ErrNotFound):
			why("its user %s does not exist any more", c.Subject)
		case err != nil:
			return err
		case u.Disabled:
			why("its user %s is disabled", u.Name)
		}
	}
	state, err := a.store.TokenActive(ctx, storage.TokenKey{
		TokenID:  c.TokenID,
		GrantID:  c.GrantID,
		NodeID:   c.NodeID,
		ClientID: c.ClientID,
		Now:      now,
	})
	switch {
	case err != nil:
		return err
	case !state.Active && c.NodeID != "":
		why("the helper %s or one above it was cut, or its grant %s was revoked or paused, is unknown here, or has ended",
			c.NodeID, c.GrantID)
	case !state.Active && c.GrantID != "":
		why("its grant %s was revoked or paused, is unknown here, or has ended; or the token itself was revoked", c.GrantID)
	case !state.Active:
		why("it was revoked, or its client was deleted")
	}
	return nil
}

func (i inspection) print(ctx context.Context, s std, n *admin.Names, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, i)
	}
	c := i.claims
	verdict := "yes"
	if !i.Active {
		verdict = "no"
	}
	printFields(s.out, "active", verdict)
	for _, w := range i.Why {
		printFields(s.out, "because", w)
	}
	printFields(s.out, "issuer", c.Issuer, "audience", c.Audience, "user", n.User(ctx, c.Subject), "client",
		n.Client(ctx, c.ClientID), "scope", c.Scope,
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
