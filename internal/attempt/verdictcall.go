package attempt

import (
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// judgeOpening judges an attempt that has only calls without a token.
func judgeOpening(s Step, now time.Time) Verdict {
	if now.Sub(s.At) < quietClient {
		return pending("The client was told to sign in.")
	}
	return ChallengeOnly.verdict("The client asked the MCP server without a token, was told where to sign in, and " +
		"nothing followed.")
}

// judgeCall judges a call that the MCP server's guard refused.
func judgeCall(steps []Step, s Step) Verdict {
	switch {
	case s.anonymous():
		return judgeLost(steps, s)
	case s.Answer.Outcome == oauth.OutcomeClearanceRequired:
		return ApprovalWaiting.verdict("The call of " + s.called() + " waits for the approval of a person.")
	case s.Answer.Error == string(oauth.InsufficientScope):
		return ScopeMissing.verdict("The token has not the scopes that " + s.called() + " needs: " +
			s.sent("scope") + ".")
	case s.Answer.Error == string(oauth.InsufficientAuthentication):
		return AuthenticationMissing.verdict("For " + s.called() + " the person has to sign in more strongly, or again.")
	case s.Answer.Error == string(oauth.InvalidToken):
		return judgeToken401(s)
	}
	return CallRefused.verdict("The MCP server refused " + s.called() + ": " + strings.TrimSuffix(told(s), ".") +
		" (" + s.Answer.Outcome + ").")
}

// judgeLost judges a call without a token right after the client got one. If address or agent
// differ from the client's, the verdict separates facts from likely conclusions.
func judgeLost(steps []Step, s Step) Verdict {
	var got Step
	for _, t := range steps {
		if t.issued() && !t.At.After(s.At) {
			got = t
		}
	}
	if got.Keys.Address == s.Keys.Address && got.Request.Agent == s.Request.Agent {
		text := "The client got its tokens, and right after that came to the MCP server without Authorization."
		if s.proxied() {
			text += " It came through a proxy."
		}
		return AuthorizationLost.verdict(text)
	}
	from := "the same address"
	if got.Keys.Address != s.Keys.Address {
		from = "a proxy at another address"
	}
	as := "without User-Agent"
	if s.Request.Agent != "" {
		as = "as " + s.Request.Agent
	}
	later := max(s.At.Sub(got.At).Round(time.Second), time.Second).String()
	return AuthorizationLost.verdict("The client got its tokens, and " + later + " later a request without " +
		"Authorization came to the same MCP server, from " + from + ", " + as + ". Nothing else came " +
		"from there. It is likely the client's, and a proxy on its way drops Authorization.")
}

// judgeToken401 judges a token that was not accepted.
func judgeToken401(s Step) Verdict {
	e, other := s.expected("audience")
	switch state := TokenState(s.param(paramToken)); {
	case other:
		v := AudienceWrong.verdict("The client sent the token for " + s.param("audience") + " to another MCP server." +
			e.words())
		v.Difference = e.Difference
		return v
	case state == TokenForeign:
		return TokenNotOurs.verdict("The client sent a token that this server has not issued.")
	case state == TokenExpired:
		return TokenNotRefreshed.verdict("The client sent a token that has expired, and did not refresh it.")
	case state == TokenEnded:
		return AccessEnded.verdict("The token was ended before it expired: the access was cut, paused or signed out.")
	}
	return CallRefused.verdict("The token was not accepted: " + told(s)) // for example, a token without its DPoP proof
}

// proxied reports whether a request has a proxy's header.
func (s Step) proxied() bool {
	return slices.ContainsFunc(passedOn, func(name string) bool {
		return slices.Contains(s.Request.Header, strings.ToLower(name))
	})
}

// called names the tool or method of the call.
func (s Step) called() string {
	if tool := s.param(paramTool); tool != "" {
		return "the tool " + tool
	}
	if method := s.param(paramMethod); method != "" {
		return method
	}
	return "the request"
}
