package attempt

import (
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// judgeOpening is of an attempt that has nothing but calls without a token.
func judgeOpening(s Step, now time.Time) Verdict {
	if now.Sub(s.At) < quietClient {
		return pending("The client was told to sign in.")
	}
	return ChallengeOnly.verdict("The client asked the MCP server without a token, was told where to sign in, and " +
		"nothing followed.")
}

// judgeCall is of a call that the MCP server's guard refused.
func judgeCall(s Step) Verdict {
	switch {
	case s.anonymous():
		return AuthorizationLost.verdict("The client got its tokens, and right after that came to the MCP server " +
			"without Authorization." + proxied(s))
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

// judgeToken401 is of a token that was not accepted.
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
	return CallRefused.verdict("The token was not accepted: " + told(s)) // such as one that lacks its proof
}

// proxied says that a request came through a proxy.
func proxied(s Step) string {
	for _, name := range passedOn {
		if slices.Contains(s.Request.Header, strings.ToLower(name)) {
			return " It came through a proxy."
		}
	}
	return ""
}

// called is what was asked of the MCP server.
func (s Step) called() string {
	if tool := s.param(paramTool); tool != "" {
		return "the tool " + tool
	}
	if method := s.param(paramMethod); method != "" {
		return method
	}
	return "the request"
}
