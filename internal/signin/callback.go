package signin

import (
	"cmp"
	"context"
	"errors"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Callback is the loopback listener that the browser returns to. It exists only during a sign-in.
type Callback struct {
	URI     string
	answers chan answer
	server  *http.Server
	closed  chan struct{}
	close   sync.Once
}

// answer is the authorization response from the browser. ended takes the result, which the browser
// then shows.
type answer struct {
	values url.Values
	ended  chan error // buffered for one error
}

// anyPort is the redirect URI of a client without one of its own. Servers accept any port (RFC 8252
// §7.3).
const anyPort = "http://127.0.0.1/callback"

// Listen opens a callback on a free port of loopback (CL-16).
func Listen() (*Callback, error) { return ListenAt(anyPort) }

// ListenAt opens a callback for a redirect URI on loopback. Without a port in the URI, any free port
// is used. For the host localhost, it listens on IPv4 and IPv6.
func ListenAt(redirect string) (*Callback, error) {
	const advice = "Use a redirect URI such as http://127.0.0.1/callback."
	u, err := url.Parse(redirect)
	if err != nil || u.Scheme != "http" || !oauth.IsLoopbackHost(u.Hostname()) || u.RawQuery != "" {
		return nil, fail(StepBrowser, advice, "%q is not an http URL of this computer", redirect)
	}
	hosts := []string{u.Hostname()}
	if u.Hostname() == "localhost" {
		hosts = []string{"127.0.0.1", "::1"}
	}
	var open []net.Listener
	port := cmp.Or(u.Port(), "0")
	for _, host := range hosts {
		l, failed := net.Listen("tcp", net.JoinHostPort(host, port))
		if failed != nil {
			err = failed
			continue // perhaps there is no IPv6, or no IPv4
		}
		open = append(open, l)
		_, port, _ = net.SplitHostPort(l.Addr().String()) // an address of the system
	}
	if len(open) == 0 {
		return nil, fail(StepBrowser, "Does another program use the port?", "there is no listener for %s: %v",
			redirect, err)
	}
	u.Host = net.JoinHostPort(u.Hostname(), port)
	c := &Callback{URI: u.String(), answers: make(chan answer, 1), closed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+cmp.Or(u.EscapedPath(), "/"), c.receive)
	c.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	for _, l := range open {
		go c.server.Serve(l)
	}
	return c, nil
}

// Take accepts a callback URL that the user copied from a browser on another computer. It must be
// the only response.
func (c *Callback) Take(raw string) error {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.RawQuery == "" {
		return fail(StepBrowser, "Copy the whole URL from the address bar of the browser.",
			"the text is not the URL of a callback")
	}
	select {
	case c.answers <- answer{u.Query(), make(chan error, 1)}:
		return nil
	default:
		return errSuperfluous
	}
}

// callbackPage looks like the server's pages, whose style sheet it cannot load. It is in English,
// like the command line.
var callbackPage = template.Must(template.New("callback").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark }
body { margin: 0; padding: clamp(1.25rem, 7vh, 5rem) 1rem; font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
  background: light-dark(#f3f1ec, #121412); color: light-dark(#1c1f1c, #eeede8) }
main { max-width: 28.5rem; margin: auto; padding: 2rem; border: 1px solid light-dark(#dfdbd1, #363b35); border-radius: 1rem;
  background: light-dark(#fffefb, #1b1e1b) }
h1 { margin: 0 0 .5rem; font-size: 1.75rem; line-height: 1.15 }
p { margin: 0 0 .75rem }
.bad { padding: .75rem 1rem; border-left: 3px solid light-dark(#b3382a, #f0958a); background: light-dark(#fcebe8, #371d1b) }
</style>
<main><h1>{{.Title}}</h1>{{with .Why}}<p class="bad" role="alert"><bdi>{{.}}</bdi></p>{{end}}{{with .Advice}}<p>{{.}}</p>{{end}}
<p>You can close this window and go back to the terminal.</p></main></html>
`))

// outcome is the text of the page.
type outcome struct{ Title, Why, Advice string }

func outcomeOf(err error) outcome {
	if err == nil {
		return outcome{Title: "Signed in"}
	}
	out := outcome{Title: "Not signed in", Why: err.Error()}
	if e := (*discovery.Error)(nil); errors.As(err, &e) {
		out.Why, out.Advice = e.Why, e.Advice
	}
	return out
}

// After these errors, the response is ignored.
var (
	errSuperfluous = errors.New("the browser had come back before")
	errOver        = errors.New("the command has ended meanwhile")
)

// receive makes the browser wait until its response was used: an error, or a refused code, is not a
// sign-in. Only the first response counts.
func (c *Callback) receive(w http.ResponseWriter, r *http.Request) {
	a := answer{r.URL.Query(), make(chan error, 1)}
	err := errSuperfluous
	select {
	case c.answers <- a:
		select {
		case err = <-a.ended:
		case <-c.closed:
			err = errOver
			select {
			case err = <-a.ended: // both channels are ready
			default:
			}
		case <-r.Context().Done():
			return
		}
	default:
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	w.Header().Set("Referrer-Policy", "no-referrer")
	_ = callbackPage.Execute(w, outcomeOf(err)) // fails only if the browser is gone
}

// Close closes the listener.
func (c *Callback) Close() {
	c.close.Do(func() { close(c.closed) })
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if c.server.Shutdown(ctx) != nil {
		c.server.Close()
	}
}

// Await waits for the browser, shows it a success page, and returns the response parameters without
// checking them.
func (c *Callback) Await(ctx context.Context) (url.Values, error) {
	select {
	case a := <-c.answers:
		a.ended <- nil
		return a.values, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Redeem waits for the browser and exchanges the code from its response. The browser shows the
// result.
func (c *Client) Redeem(
	ctx context.Context, s Server, cred Credentials, r Request, back *Callback, resource string,
) (token oauth.TokenResponse, err error) {
	var a answer
	select {
	case a = <-back.answers:
	case <-ctx.Done():
		return token, fail(StepBrowser, "Open the URL again, or give more time with --timeout.",
			"the browser did not come back")
	}
	defer func() { a.ended <- err }()
	code, err := r.code(s, a.values)
	if err != nil {
		return token, err
	}
	return c.Token(ctx, s, cred, r, back.URI, resource, code)
}

// code returns the code of a response. It checks the issuer before it uses any other parameter (RFC
// 9207 §2.4, CL-24).
func (r Request) code(s Server, q url.Values) (string, error) {
	iss, sent := q.Get("iss"), q.Has("iss")
	switch {
	case q.Get("state") != r.state:
		return "", fail(StepBrowser, "Start again; if it happens again, another program may interfere.",
			"the answer is not to this request (state differs)")
	case s.AuthorizationResponseIss && !sent:
		return "", fail(StepBrowser, "The server must send iss with every answer, since it says it does.",
			"the answer has no iss")
	case sent && iss != s.Issuer:
		return "", fail(StepBrowser, "The answer may come from another server (mix-up); do not go on.",
			"the answer names another issuer than %s", s.Issuer)
	case q.Get("error") != "":
		return "", fail(StepBrowser, advise(q.Get("error")), "%s",
			strings.TrimSuffix(q.Get("error")+": "+q.Get("error_description"), ": "))
	case q.Get("code") == "":
		return "", fail(StepBrowser, "The server's answer is broken.", "the answer has no code")
	}
	return q.Get("code"), nil
}
