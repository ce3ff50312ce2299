package attempt

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Verdict is the result of an attempt.
type Verdict struct {
	OK         bool        `json:"ok"`
	Pending    bool        `json:"pending"` // the attempt may continue
	Text       string      `json:"verdict"`
	Fault      Fault       `json:"fault"` // "": no fault
	Whose      Whose       `json:"whose"` // who can fix it
	Next       string      `json:"next"`  // the advice for Whose
	Advice     Advice      `json:"advice"`
	Difference *Difference `json:"difference,omitempty"`
	Known      string      `json:"known,omitempty"` // known fault of this client
	Decided    string      `json:"-"`               // reference of the deciding step
}

// Advice lists the next step for each side.
type Advice struct {
	Person   string `json:"person"`
	Operator string `json:"operator"`
	Client   string `json:"client"` // for the client's author
}

// Whose names the side that can fix a fault.
type Whose string

// The sides.
const (
	OfPerson   Whose = "person"
	OfOperator Whose = "operator"
	OfClient   Whose = "client"
)

// Silence after which an attempt counts as unfinished.
const (
	quietClient = 2 * time.Minute  // if a program must continue
	quietPerson = 10 * time.Minute // if a user must continue
)

// Judge returns the verdict on the ordered steps of one attempt at a time.
func Judge(steps []Step, now time.Time) Verdict {
	last, read, opened := -1, -1, -1
	got, called := false, false
	for i, s := range steps {
		switch {
		case s.anonymous() && (!got || called):
			opened = i
		case s.Kind != Discovery:
			last = i
		case read < 0 || !s.failed() || steps[read].failed():
			read = i
		}
		got, called = got || s.issued(), called || s.Kind == Call && !s.failed()
	}
	var v Verdict
	switch {
	case last < 0 && read < 0:
		last = opened
		v = judgeOpening(steps[last], now)
	case last < 0:
		last = read
		v = judgeReading(readings(steps), now)
	case steps[last].failed():
		last = spent(steps, last)
		v = judgeFailure(steps, steps[last])
	case steps[last].issued(), steps[last].Kind == Call, steps[last].Kind == Refresh:
		v = judgeSuccess(steps[last])
	default:
		v = judgeSilence(steps[last], now)
	}
	v.Decided = steps[last].Reference
	v.recognize(steps)
	v.Next = v.Advice.of(v.Whose)
	return v
}

func (a Advice) of(w Whose) string {
	return map[Whose]string{OfPerson: a.Person, OfOperator: a.Operator, OfClient: a.Client}[w]
}

// spent returns the step whose repeated code or refresh token ended the grant, if the failed step
// is a consequence of that. Otherwise it returns the failed step.
func spent(steps []Step, failed int) int {
	s := steps[failed]
	if s.param(paramToken) != string(TokenEnded) && (s.Kind != Refresh || s.Answer.Cause != CauseRevoked) {
		return failed
	}
	for i, s := range steps[:failed] {
		if s.Answer.Cause == CauseSpent {
			return i
		}
	}
	return failed
}

func judgeSuccess(s Step) Verdict {
	v := Verdict{OK: true, Text: "The client got its tokens."}
	if s.Kind == Refresh {
		v.Text = "The client got new tokens for a refresh token."
	}
	if s.Kind == Call {
		v.Text = "The client got its tokens, and the MCP server let " + s.called() + " through."
	}
	if s.Kind == Token && strings.Contains(s.Keys.Match, "slash") {
		v.Text += " It names the MCP server with a slash at the end, which was overlooked."
	}
	return v
}

func readings(steps []Step) (out []Step) {
	for _, s := range steps {
		if s.Kind == Discovery {
			out = append(out, s)
		}
	}
	return out
}

// judgeReading judges an attempt that has only metadata readings and calls without a token.
func judgeReading(steps []Step, now time.Time) Verdict {
	last := steps[len(steps)-1]
	for _, s := range steps {
		if s.failed() {
			continue
		}
		if now.Sub(last.At) < quietClient {
			return pending("The client has read the metadata.")
		}
		if e, ok := s.expected("path"); ok {
			v := MetadataWrongPath.verdict("The client read the metadata at " + s.Request.Path + ", where they are " +
				"served as well, and nothing followed: it compares the issuer with one that ends otherwise.")
			v.Difference = e.Difference
			return v
		}
		return MetadataOnly.verdict("The client read the metadata at " + s.Request.Path + ", and nothing followed.")
	}
	for _, s := range steps {
		if e, ok := s.expected("path"); ok {
			v := MetadataWrongPath.verdict("The client asked at " + s.Request.Path + ", where nothing is.")
			v.Difference = e.Difference
			return v
		}
	}
	return MetadataWrongPath.verdict("The client looked for metadata at " + last.Request.Path + ", where none are.")
}

func pending(text string) Verdict { return Verdict{Pending: true, Text: text} }

// judgeSilence judges an attempt whose last step succeeded.
func judgeSilence(s Step, now time.Time) Verdict {
	quiet, gone := now.Sub(s.At), func(after time.Duration) bool { return now.Sub(s.At) >= after }
	since := quiet.Round(time.Second).String()
	switch {
	case s.sent("code") != "":
		if !gone(quietClient) {
			return pending("The browser was sent to the client with a code.")
		}
		return CodeNotRedeemed.verdict("The browser was sent to " + s.Answer.To +
			" with a code, and the client never redeemed it.")
	case s.Answer.Page != "":
		if !gone(quietPerson) {
			return pending("The person is shown the " + s.Answer.Page + ", since " + since + ".")
		}
		return PersonDidNotReturn.verdict("The person was shown the " + s.Answer.Page + ", and nothing followed.")
	case s.Kind == Registration:
		if !gone(quietClient) {
			return pending("The client has registered.")
		}
		return RegistrationOnly.verdict("The client registered, and sent no browser here.")
	case s.Kind == Provider:
		if !gone(quietPerson) {
			return pending("The person is at the provider, since " + since + ".")
		}
		return ProviderDidNotReturn.verdict("The person went to the provider, and did not come back.")
	case s.Answer.To != "" && s.sent("error") != "":
		return RequestRefused.verdict("The client was told: " + s.sent("error") + ".")
	case !gone(quietPerson):
		return pending("The last step was: " + string(s.Kind) + ".")
	}
	return PersonDidNotReturn.verdict("After the step " + string(s.Kind) + " nothing followed.")
}

// judgeFailure judges an attempt whose last step was refused.
func judgeFailure(steps []Step, s Step) Verdict {
	if v, decided := judgeCause(s); decided {
		return v
	}
	code := oauth.Code(s.Answer.Error)
	if s.Answer.Status >= 500 || code == oauth.ServerError || code == oauth.TemporarilyUnavailable {
		return ServerFailed.verdict("The server could not answer: " + told(s))
	}
	if code == oauth.AccessDenied && s.Kind == Consent {
		return PersonRefused.verdict("The person refused.")
	}
	switch s.Kind {
	case Registration:
		return RegistrationRefused.verdict("The registration was refused: " + told(s))
	case SignIn:
		return SignInRefused.verdict("The person's proof was not accepted.")
	case Provider:
		return ProviderRefused.verdict("The sign-in at the provider was not accepted: " + s.reason())
	case Token:
		return judgeToken(steps, s, code)
	case Refresh:
		return judgeRefresh(s, code)
	case Call:
		return judgeCall(steps, s)
	}
	return judgeRequest(s, code)
}

// judgeRequest judges a refused authorization request.
func judgeRequest(s Step, code oauth.Code) Verdict {
	if e, ok := s.expected("redirect_uri"); ok {
		v := RedirectURIUnknown.verdict("The client sent a redirect URI that is not registered for it: " +
			s.param("redirect_uri") + "." + e.words())
		v.Difference = e.Difference
		return v
	}
	if v, ok := judgeTarget(s); ok {
		return v
	}
	switch method := s.param("code_challenge_method"); {
	case s.Request.Params == nil:
	case s.param("code_challenge") == "" && code == oauth.InvalidRequest:
		return PKCEMissing.verdict("The client sent no code_challenge, and PKCE is required.")
	case method != oauth.S256 && code == oauth.InvalidRequest:
		return PKCEMissing.verdict("The client sent the code_challenge_method " + strconv.Quote(method) +
			", and S256 is required.")
	case strings.HasPrefix(s.param("code_challenge"), "(") && code == oauth.InvalidRequest:
		return PKCEMissing.verdict("What the client sent as code_challenge is no S256 challenge: " +
			s.param("code_challenge") + ".")
	}
	return RequestRefused.verdict("The authorization request was refused: " + told(s))
}

// judgeTarget judges a request for an unknown resource.
func judgeTarget(s Step) (Verdict, bool) {
	e, ok := s.expected("resource")
	if !ok || s.Answer.Error != string(oauth.InvalidTarget) {
		return Verdict{}, false
	}
	v := ResourceUnknown.verdict("The client asked for an MCP server that is not known here: " + s.param("resource") +
		"." + e.words())
	v.Difference = e.Difference
	return v, true
}

// judgeToken judges a refused token request by comparing it with the authorization request.
func judgeToken(steps []Step, s Step, code oauth.Code) Verdict {
	if v, ok := judgeTarget(s); ok {
		return v
	}
	switch verifier := s.param("code_verifier"); {
	case code == oauth.InvalidClient:
		return CredentialsWrong.verdict("The client did not authenticate: " + told(s))
	case s.param("grant_type") != oauth.GrantCode || code != oauth.InvalidGrant:
		return RequestRefused.verdict("The token request was refused: " + told(s))
	case verifier == "":
		return VerifierWrong.verdict("The client sent no code_verifier.")
	case strings.HasPrefix(verifier, "("):
		return VerifierWrong.verdict("What the client sent as code_verifier is no verifier: " + verifier + ".")
	}
	for _, asked := range steps {
		if asked.Kind != Authorize || asked.Keys.Thread == "" {
			continue
		}
		if v, ok := compare(asked, s); ok {
			return v
		}
	}
	switch s.Answer.Cause {
	case CauseSpent:
		return CodeSpent.verdict("The client redeemed its code a second time, so its grant was ended.")
	case CauseExpired:
		return CodeExpired.verdict("The client redeemed its code too late.")
	}
	return CodeUnknown.verdict("The client sent a code that is not its own, or that this server does not know.")
}

// compare returns a verdict if a token request contradicts the authorization request of its
// attempt.
func compare(asked, s Step) (Verdict, bool) {
	want, got := asked.param("code_challenge"), strings.TrimPrefix(s.param("code_verifier"), "of the challenge ")
	if want != "" && got != want {
		v := VerifierWrong.verdict("The client sent a code_verifier that does not belong to the code_challenge of " +
			"this attempt: it is that of another attempt.")
		v.Difference = Differ(got, want)
		return v, true
	}
	if got, want := s.param("redirect_uri"), asked.param("redirect_uri"); got != "" && want != "" && got != want {
		v := RedirectURIChanged.verdict("The client sent another redirect_uri with the code than it had asked with.")
		v.Difference = Differ(got, want)
		return v, true
	}
	if got, want := s.Keys.Client, asked.Keys.Client; got != "" && got != want {
		v := CodeUnknown.verdict("The code was issued to another client id than the one that redeemed it.")
		v.Difference = Differ(cut(got, maxValue), cut(want, maxValue))
		return v, true
	}
	return Verdict{}, false
}

func judgeRefresh(s Step, code oauth.Code) Verdict {
	switch {
	case s.Answer.Cause == CauseSpent:
		return RefreshTokenSpent.verdict("The client used a refresh token a second time, long after it had got " +
			"the next, so its grant was ended.")
	case code == oauth.InvalidGrant:
		return GrantEnded.verdict("The refresh token is good no more: " + s.reason())
	case code == oauth.InvalidClient:
		return CredentialsWrong.verdict("The client did not authenticate: " + told(s))
	}
	return RequestRefused.verdict("The refresh was refused: " + told(s))
}

func (s Step) reason() string {
	if s.Answer.Reason != "" {
		return strings.TrimSuffix(s.Answer.Reason, ".") + "."
	}
	return s.Answer.Description
}

// told returns the error sent to the client or the user, in protocol terms.
func told(s Step) string {
	switch {
	case s.Answer.Error == "":
		return fmt.Sprintf("status %d.", s.Answer.Status)
	case s.Answer.Description == "":
		return s.Answer.Error + "."
	}
	return s.Answer.Error + ", " + s.Answer.Description
}

func (s Step) expected(name string) (Expected, bool) {
	for _, e := range s.Expected {
		if e.Name == name {
			return e, true
		}
	}
	return Expected{}, false
}

func (e Expected) words() string {
	if len(e.Values) == 0 {
		return ""
	}
	return " Known: " + strings.Join(e.Values, ", ") + "."
}
