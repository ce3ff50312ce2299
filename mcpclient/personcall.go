package mcpclient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/signin"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// approvalPoll is the interval between attempts of a call that waits for approval.
const approvalPoll = 3 * time.Second

// RoundTrip implements http.RoundTripper for requests to the origin of the MCP server. It refuses
// other origins, which would receive the token (CL-26). After a refusal, it refreshes the token,
// makes the user sign in with more scopes or a stronger authentication, or waits for the approval of
// a call, and repeats the request if its body can be read again.
func (p *Person) RoundTrip(r *http.Request) (*http.Response, error) {
	if !p.isOurs(r.URL) {
		closeBody(r)
		return nil, fmt.Errorf("mcpclient: the tokens are for %s, and not for %s", p.origin, r.URL.Host)
	}
	a, err := p.access(r.Context(), want{})
	if err != nil {
		closeBody(r)
		return nil, err
	}
	body, c := r.Body, &refusals{p: p}
	for {
		resp, err := a.send(r, body)
		if err != nil {
			return nil, err
		}
		next, again := c.after(resp, a)
		if !again {
			return resp, nil
		}
		var readable bool
		if body, readable = dpop.Again(r); !readable {
			return resp, nil
		}
		if next.wait && !c.await(r.Context(), resp) {
			return resp, nil
		}
		// Drain the body so that the connection can be reused.
		_, _ = io.CopyN(io.Discard, resp.Body, maxText)
		resp.Body.Close()
		if a, err = p.access(r.Context(), next.want); err != nil {
			return nil, err
		}
	}
}

func (a access) send(r *http.Request, body io.ReadCloser) (*http.Response, error) {
	r2 := r.Clone(r.Context()) // a RoundTripper must not modify the request
	r2.Body = body
	token := oauth.TokenResponse{AccessToken: a.Access, TokenType: a.kind()}
	return a.client.Present(token).RoundTrip(r2)
}

// refusals records what was done so far for a refused call.
type refusals struct {
	p        *Person
	ups      signin.StepUps
	renewed  int  // sign-ins or refreshes after a refused token
	told     bool // the user knows that the call waits
	deadline time.Time
}

// step is the next step for a refused call.
type step struct {
	want want
	wait bool // an approval is missing, and the same token will do
}

// after returns the step after a response. again is false if the response is final.
func (c *refusals) after(resp *http.Response, a access) (next step, again bool) {
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return next, false
	}
	list, _ := oauth.ParseChallenges(resp.Header.Values("WWW-Authenticate"))
	for _, ch := range list {
		more, ok := signin.Needed(ch)
		if !ok {
			continue
		}
		if c.ups.MustWait(more, a.Scopes, !a.Device) {
			return step{wait: true}, true
		}
		scopes, ok := c.ups.Ask(more, !a.Device)
		return step{want: want{not: a.Access, person: true, scopes: scopes, proof: more.Proof}}, ok
	}
	if resp.StatusCode == http.StatusForbidden {
		return next, false
	}
	c.renewed++
	w := want{not: a.Access, person: c.renewed > 1, moved: c.renewed > 1, header: resp.Header}
	return step{want: w}, c.renewed < 3
}

// await waits before the call is repeated, and tells the user once why. It returns false when the
// call has waited for too long.
func (c *refusals) await(ctx context.Context, resp *http.Response) bool {
	if !c.told {
		c.told, c.deadline = true, c.p.now().Add(signInTime)
		text := "another person must approve it"
		if list, err := oauth.ParseChallenges(resp.Header.Values("WWW-Authenticate")); err == nil {
			for _, ch := range list {
				if said := ch.Params["error_description"]; said != "" {
					text = said
				}
			}
		}
		c.p.c.Ask(ctx, Prompt{Waiting: text})
	}
	select {
	case <-time.After(c.p.again):
		return c.p.now().Before(c.deadline)
	case <-ctx.Done():
		return false
	}
}
