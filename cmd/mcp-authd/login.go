package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/qr"
	"github.com/mcp-authd/mcp-authd/internal/signin"
	"github.com/mcp-authd/mcp-authd/internal/toolcall"
	"github.com/mcp-authd/mcp-authd/mcpclient"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// loginFlags holds the flags of login.
type loginFlags struct {
	noBrowser, asJSON, secretStdin bool
	device, dpop, keep             bool
	clientID, tool, workload       string
	argsJSON                       string
	scopes, args                   []string
	timeout                        time.Duration
}

func newLoginCommand(s std) *cobra.Command {
	var f loginFlags
	c := &cobra.Command{
		Use:   "login MCP_URL",
		Short: "Act as an MCP client: discover, register, sign in, list tools",
		Long: "Signs in to an MCP server as any client does, prints each step, and says which one failed and why.\n" +
			"Nothing is kept, except with --keep: mcp-authd token then prints a token without another sign-in.\n\n" +
			"A tool call may need more than the first sign-in gave: more scopes, a stronger or more recent\n" +
			"sign-in, or the approval of a user for this call. The command then signs in again, up to five times.\n" +
			"If another user has to approve the call, or with --device and --workload, it prints the link and\n" +
			"waits.\n\n" +
			"The value of --arg is a text if the input schema of the tool says text or gives no type. For other\n" +
			"types it is JSON: 250, true, null, [\"a\"], {\"a\": 1}.",
		Example: "  mcp-authd login http://127.0.0.1:8414/mcp\n  mcp-authd login --call add_note --arg text=hello http://127.0.0.1:8414/mcp\n" +
			"  mcp-authd login --call pay --arg amount=250 --arg 'to={\"name\": \"Bob\"}' https://mcp.example.com/mcp\n" +
			"  mcp-authd login --call pay --args-json '{\"amount\": 250}' https://mcp.example.com/mcp\n" +
			"  mcp-authd login --device https://mcp.example.com/mcp\n" +
			"  mcp-authd login --workload=file:/run/token --dpop https://mcp.example.com/mcp",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := newLogin(s, f, args[0])
			if err != nil {
				return usageError{err, c.CommandPath()}
			}
			ctx, cancel := context.WithTimeout(c.Context(), f.timeout)
			defer cancel()
			err = l.run(ctx)
			if err == nil && l.store != nil {
				err = l.keep(c.Context())
			}
			return l.report(err)
		},
	}
	fl := c.Flags()
	fl.BoolVar(&f.noBrowser, "no-browser", false, "print the URL instead of opening a browser")
	fl.BoolVar(&f.device, "device", false, "show a code to approve on another device, without a local listener")
	fl.StringVar(&f.workload, "workload", "", "sign in as the workload that this platform identifies: "+
		"github-actions, google, azure[:CLIENT_ID], aws, file:PATH, env:NAME (without =: detected from the environment)")
	fl.Lookup("workload").NoOptDefVal = anyPlatform
	fl.BoolVar(&f.dpop, "dpop", false, "bind tokens to a key that is kept in memory (RFC 9449)")
	fl.BoolVar(&f.keep, "keep", false, "keep the sign-in of the user for mcp-authd token")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object for each step")
	fl.StringVar(&f.clientID, "client-id", "", "use this client instead of registering one")
	fl.BoolVar(&f.secretStdin, "client-secret-stdin", false, "read the secret of --client-id from standard input")
	fl.StringSliceVar(&f.scopes, "scope", nil, "scopes to request (default: the scopes that the server asks for)")
	fl.StringVar(&f.tool, "call", "", "call this tool after listing; signs in again if it needs more")
	fl.StringArrayVar(&f.args, "arg", nil, "argument of the tool; repeat for more")
	fl.StringVar(&f.argsJSON, "args-json", "", "arguments of the tool as a JSON object; --arg adds to it")
	fl.DurationVar(&f.timeout, "timeout", 5*time.Minute, "time limit for the command")
	return c
}

// login is one run of the command.
type login struct {
	std    std
	flags  loginFlags
	url    string
	cred   signin.Credentials
	call   toolcall.Call
	client *signin.Client
	by     mcpclient.PlatformToken // nil if a user signs in
	store  mcpclient.Store         // keeps the sign-in; nil: nothing is kept
	kept   signin.Kept
	n      int
}

func newLogin(s std, f loginFlags, mcpURL string) (*login, error) {
	l := &login{std: s, flags: f, url: mcpURL, client: signin.New(), cred: signin.Credentials{ID: f.clientID}}
	if f.dpop {
		var err error
		if l.client, err = signin.NewBound(); err != nil {
			return nil, err
		}
	}
	if f.keep {
		if f.workload != "" || f.dpop || f.secretStdin {
			return nil, errors.New("--keep keeps the sign-in of a user: leave --workload, --dpop and " +
				"--client-secret-stdin out")
		}
		var err error
		if l.store, err = signInStore(s, ""); err != nil {
			return nil, err
		}
	}
	if f.workload != "" {
		if err := l.asWorkload(); err != nil {
			return nil, err
		}
	}
	if f.secretStdin {
		if f.clientID == "" {
			return nil, errors.New("--client-secret-stdin needs --client-id")
		}
		line, err := bufio.NewReader(s.in).ReadString('\n')
		if line == "" && err != nil {
			return nil, errors.New("no secret on standard input")
		}
		l.cred.Secret = strings.TrimRight(line, "\r\n")
	}
	args, err := toolcall.ReadArguments(f.args, f.argsJSON)
	if err != nil {
		return nil, err
	}
	l.call = toolcall.Call{Tool: f.tool, Args: args}
	return l, nil
}

// run performs all steps. It repeats sign-in if a tool needs more permissions.
func (l *login) run(ctx context.Context) error {
	if l.by != nil {
		return l.byWorkload(ctx)
	}
	ch, err := l.client.Challenge(ctx, l.url)
	if err != nil {
		return err
	}
	l.step(discovery.StepChallenge, ch, "401 from %s, scope %q", l.url, ch.Scope)
	r, err := l.client.Resource(ctx, l.url, ch)
	if err != nil {
		return err
	}
	if r.Location == "" {
		l.step(discovery.StepResource, r, "no RFC 9728 document: a server of MCP 2025-03-26")
	} else {
		l.step(discovery.StepResource, r, "%s, resource matches", r.Location)
	}
	server, err := l.client.Metadata(ctx, l.url, r)
	if err != nil {
		return err
	}
	l.step(discovery.StepMetadata, server, "%s, issuer matches, PKCE S256%s", server.Issuer,
		ifText(server.AuthorizationResponseIss, ", iss"))
	l.kept = signin.Kept{Issuer: server.Issuer, Resource: l.resource(r), Device: l.flags.device}
	if l.flags.device {
		return l.byDevice(ctx, server, l.resource(r), l.firstScopes(ch, r))
	}
	return l.byBrowser(ctx, server, l.resource(r), l.firstScopes(ch, r))
}

// resource returns the resource for token requests.
func (l *login) resource(r discovery.Resource) string {
	if r.ProtectedResource.Resource == "" {
		return l.url
	}
	return r.ProtectedResource.Resource
}

func (l *login) byBrowser(ctx context.Context, server signin.Server, resource string, scopes oauth.Scopes) error {
	callback, err := signin.Listen()
	if err != nil {
		return err
	}
	defer callback.Close()
	l.kept.Redirect = callback.URI
	if err := l.identify(func() (signin.Credentials, error) {
		return l.client.Register(ctx, server, callback.URI)
	}); err != nil {
		return err
	}
	get := func(ctx context.Context, scopes oauth.Scopes, proof signin.Proof) (access, error) {
		return l.present(l.browse(ctx, server, callback, resource, scopes, proof))
	}
	return l.signIn(ctx, scopes, obtain{get: get, pages: true})
}

// firstScopes returns the scopes that the user names, else those of the challenge, else those of
// the document (CL-18).
func (l *login) firstScopes(ch discovery.Challenge, r discovery.Resource) oauth.Scopes {
	switch {
	case len(l.flags.scopes) > 0:
		return l.flags.scopes
	case len(ch.Scope) > 0: // CL-19
		return ch.Scope
	}
	return oauth.Scopes(r.ScopesSupported)
}

func (l *login) identify(register func() (signin.Credentials, error)) (err error) {
	if l.cred.ID != "" {
		l.step(signin.StepRegistration, l.cred, "using the client %s", l.cred.ID)
		return nil
	}
	if l.cred, err = register(); err != nil {
		return err
	}
	l.step(signin.StepRegistration, l.cred, "registered as %s (%s)", short(l.cred.ID),
		ifText(l.cred.Secret == "", "public")+ifText(l.cred.Secret != "", "with a secret"))
	return nil
}

func (l *login) browse(
	ctx context.Context, server signin.Server, callback *signin.Callback, resource string, scopes oauth.Scopes,
	proof signin.Proof,
) (oauth.TokenResponse, error) {
	request, err := l.client.Authorize(server, l.cred, callback.URI, resource, scopes, proof)
	if err != nil {
		return oauth.TokenResponse{}, err
	}
	if err := l.client.Try(ctx, request); err != nil {
		return oauth.TokenResponse{}, err
	}
	l.step(signin.StepBrowser, map[string]string{"url": request.URL},
		"open this URL and approve (waiting for %s):\n\n%s\n", callback.URI, request.URL)
	if !l.flags.noBrowser {
		openBrowser(ctx, request.URL)
	}
	return l.client.Redeem(ctx, server, l.cred, request, callback, resource)
}

// keep keeps the sign-in for the command token.
func (l *login) keep(ctx context.Context) error {
	l.kept.ClientID, l.kept.Secret = l.cred.ID, l.cred.Secret
	l.kept.Scopes, _ = l.kept.Scopes.WithoutClearances()
	data, err := json.Marshal(l.kept)
	if err != nil {
		return err
	}
	return l.store.Save(ctx, signin.KeyOf(l.url, ""), data)
}

// got prints information about a token.
func (l *login) got(token oauth.TokenResponse) {
	l.step(signin.StepToken,
		map[string]any{
			"token_type": token.TokenType, "expires_in": token.ExpiresIn, "scope": token.Scope,
			"refresh_token": token.RefreshToken != "",
		},
		"%s, expires in %s, scope %q, refresh token %s", token.TokenType, time.Duration(token.ExpiresIn)*time.Second,
		token.Scope, ifText(token.RefreshToken != "", "yes")+ifText(token.RefreshToken == "", "no"))
}

// step prints a successful step. It never contains tokens or secrets.
func (l *login) step(name string, data any, format string, args ...any) {
	l.n++
	if !l.flags.asJSON {
		fmt.Fprintf(l.std.out, "✓ %d %-13s %s\n", l.n, name, label.PrintableLines(fmt.Sprintf(format, args...)))
		return
	}
	line := map[string]any{}
	if b, err := json.Marshal(data); err == nil {
		_ = json.Unmarshal(b, &line) // encoded just above
	}
	line["step"] = name
	printJSONLine(l.std.out, line)
}

// report prints the failed step.
func (l *login) report(err error) error {
	var e *discovery.Error
	if !errors.As(err, &e) {
		return err
	}
	if l.flags.asJSON {
		printJSONLine(l.std.out, e)
		return errSilent
	}
	printFailure(l.std.err, e)
	return errSilent
}

func printFailure(w io.Writer, e *discovery.Error) {
	fmt.Fprintf(w, "✗ %s: %s\n", e.Step, label.Printable(e.Why))
	if e.Advice != "" {
		fmt.Fprintf(w, "  %s\n", e.Advice)
	}
}

// openBrowser opens a URL with the desktop's opener. A failure does not matter, because the URL is
// also printed.
func openBrowser(ctx context.Context, raw string) { _ = signin.OpenBrowser(ctx, raw) }

func ifText(cond bool, text string) string {
	if cond {
		return text
	}
	return ""
}

// short shortens a self-contained client ID, which may have 500 characters.
func short(id string) string {
	if len(id) > 40 {
		return id[:36] + "..."
	}
	return id
}

// byDevice signs in with a code that the user approves on another device (RFC 8628).
func (l *login) byDevice(ctx context.Context, server signin.Server, resource string, scopes oauth.Scopes) error {
	if err := l.identify(func() (signin.Credentials, error) {
		return l.client.RegisterDevice(ctx, server)
	}); err != nil {
		return err
	}
	get := func(ctx context.Context, scopes oauth.Scopes, proof signin.Proof) (access, error) {
		return l.present(l.approveElsewhere(ctx, server, resource, scopes, proof))
	}
	return l.signIn(ctx, scopes, obtain{get: get})
}

func (l *login) approveElsewhere(
	ctx context.Context, server signin.Server, resource string, scopes oauth.Scopes, proof signin.Proof,
) (oauth.TokenResponse, error) {
	request, err := l.client.BeginDevice(ctx, server, l.cred, resource, scopes, proof)
	if err != nil {
		return oauth.TokenResponse{}, err
	}
	l.showDevice(request)
	return l.client.AwaitDevice(ctx, server, l.cred, request, resource)
}

// showDevice shows the instructions for the other device. The device code stays here.
func (l *login) showDevice(r signin.DeviceRequest) {
	l.step(signin.StepDevice, map[string]any{
		"user_code": r.UserCode, "verification_uri": r.URI, "verification_uri_complete": r.Complete,
		"expires_in": r.ExpiresIn,
	}, "open %s on any device and type the code %s (good for %s)", r.URI, r.UserCode,
		label.Count(r.ExpiresIn/60, "minute", "minutes"))
	if l.flags.asJSON || r.Complete == "" {
		return
	}
	if code, err := qr.Text(r.Complete); err == nil {
		fmt.Fprintf(l.std.out, "\n%s\n", code)
	}
}
