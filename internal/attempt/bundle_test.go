package attempt

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// secret is not a word of any language. No four consecutive letters of it may be published.
const secret = "Qzxjvkwq"

// shows returns the part of the secret that a text reveals.
func shows(text string) string {
	text = strings.ToLower(text)
	for i := range len(secret) - 3 {
		if part := strings.ToLower(secret[i : i+4]); strings.Contains(text, part) {
			return part
		}
	}
	return ""
}

// published returns both forms of a bundle.
func published(t testing.TB, a Attempt) (string, Bundle) {
	t.Helper()
	b := Publish(a, "v1.2.3", []string{"https://auth.example.com"})
	var page bytes.Buffer
	if err := b.Page(&page, "main{}"); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(out) + page.String(), b
}

// fill sets every string in v to text, and gives every list one element.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type() != reflect.TypeFor[time.Time]() {
				fill(v.Field(i), text)
			}
		}
	}
}

// planted lists the ways to hide a secret in a text.
var planted = []string{
	secret, strings.ToLower(secret), "https://" + secret + ".example.com/cb", "https://a.example.com/" + secret,
	"http://127.0.0.1:1/callback/" + secret, "https://" + secret + "@claude.ai/cb?" + secret + "#" + secret,
	secret + "://callback", secret + ":opaque", "https://claude.ai.:" + secret, "mailto:" + secret + "@example.com",
	"/authorize/" + secret, "/callback/%" + secret, `The client "` + secret + `" is unknown.`, "the '" + secret + "' x",
	"the client's " + secret + " isn't 'here'", "(43 characters, digest " + secret + ")", "(" + secret + " characters)",
	"of the challenge " + secret + "...", secret + "...", "claude-code/" + secret, "node/" + secret + " (x)",
	"openid " + secret, secret + "@example.com", "192.0.2.7 " + secret, "\u202e" + secret + "\x00", "client-" + secret,
	"https://[" + secret + "]/", "https://example.com/a\\" + secret, `"` + secret, secret + `'`, "x:'" + secret + "' y",
}

// TestBundleHoldsNoSecret: a secret planted in any field of a step, in any form, is not in the
// bundle.
func TestBundleHoldsNoSecret(t *testing.T) {
	names := slices.Concat(plain, addresses, digested, given, []string{
		"code_challenge", "code_verifier", others, "unheard_of", secret,
	})
	for _, text := range planted {
		var s Step
		fill(reflect.ValueOf(&s).Elem(), text)
		for _, name := range names {
			s.Request.Params = append(s.Request.Params, Param{name, text})
			s.Answer.Params = append(s.Answer.Params, Param{name, text})
		}
		s.Expected = append(s.Expected, Expected{
			Name: "redirect_uri", Values: []string{text}, Difference: Differ(text, "http://127.0.0.1/"+text),
		})
		s.At = noon
		for _, kind := range append(kinds, s.Kind) {
			for _, code := range []string{"", "invalid_request", "invalid_grant", "access_denied", text} {
				s.Kind, s.Answer.Error, s.Answer.Status = kind, code, 400
				out, b := published(t, newAttempt([]Step{s, s}, noon.Add(time.Hour)))
				if part := shows(out); part != "" {
					at := strings.Index(strings.ToLower(out), part)
					t.Fatalf("OB-03: %q planted, kind %q, error %q: it shows %q in ...%s", text, kind, code, part,
						out[max(at-200, 0):min(at+40, len(out))])
				}
				if len(b.Events) != 2 {
					t.Fatalf("got %d events", len(b.Events))
				}
			}
		}
	}
}

// FuzzBundle: the bundle never shows a secret, whatever text surrounds it.
func FuzzBundle(f *testing.F) {
	for _, text := range planted {
		before, after, _ := strings.Cut(text, secret)
		f.Add(before, after)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		text := before + secret + after
		if shows(before) != "" || shows(after) != "" {
			return // the text contains the secret twice
		}
		var s Step
		fill(reflect.ValueOf(&s).Elem(), text)
		s.Expected[0].Difference = Differ(text, after)
		if out, _ := published(t, newAttempt([]Step{s}, noon)); shows(out) != "" {
			t.Errorf("OB-03: %q is shown: %s", text, out)
		}
	})
}

// TestBundleSaysEnough: the bundle contains enough for the client's author: the same verdict as the
// attempt, and one placeholder per text.
func TestBundleSaysEnough(t *testing.T) {
	keys := Keys{Client: "dcr_1", ClientName: "Acme's own", Person: "usr_1", PersonName: "alice", Address: "192.0.2.1"}
	wrong := "http://127.0.0.1:50123/oauth/callback/acme"
	asked := Step{
		Reference: "K7PX2M4Q", At: noon, Kind: Authorize, Keys: keys,
		Request: Request{
			Method: "GET", Path: "/tenants/acme/authorize", Agent: "claude-code/2.1.329",
			Params: []Param{
				{"client_id", "dcr_1"}, {"redirect_uri", wrong}, {"resource", "https://mcp.acme.example/mcp"},
				{"state", "(22 characters, digest 00ff00ff)"}, {"scope", "openid acme:read"},
			},
		},
		Answer: Answer{
			Status: 400, Error: "invalid_request", Cause: CauseUnregisteredURI,
			Description: `The redirect URI "` + wrong + `" is not registered for this client.`,
		},
		Expected: []Expected{{
			Name: "redirect_uri", Values: []string{"http://127.0.0.1/callback"},
			Difference: Differ(wrong, "http://127.0.0.1/callback"),
		}},
	}
	again := asked
	again.Reference, again.At = "K7PX2M4R", noon.Add(time.Second)
	whole := newAttempt([]Step{asked, again}, noon.Add(time.Minute))
	out, b := published(t, whole)
	if b.Fault != whole.Fault || b.Reference != "K7PX2M4R" || b.ID != whole.ID || b.Whose != OfClient {
		t.Errorf("OB-03: got %+v", b.Verdict)
	}
	for _, want := range []string{
		`"path":"/part-1/part-2/authorize"`, `"agent":"claude-code/2.1.329"`, `"value":"client-1"`,
		`"value":"http://127.0.0.1:50123/oauth/callback/part-2"`, `"value":"https://host-1.example/mcp"`,
		`"value":"(22 characters, state-1)"`, `"value":"openid scope-1"`, `"client_name":"application-1"`,
		`"person":"person-1"`, `"address":"address-1"`, `"error":"invalid_request"`,
		`The redirect URI \"http://127.0.0.1:50123/oauth/callback/part-2\" is not registered for this client.`,
		"<h1>Attempt K7PX2M4R</h1>", "main{}", "mcp-authd v1.2.3",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("OB-03: the bundle lacks %s: %s", want, out)
		}
	}
	if d := b.Verdict.Difference; d == nil || d.At != 16 || !strings.HasPrefix(d.Got, "http://127.0.0.1:50123/oauth/") {
		t.Errorf("OB-03: got the difference %+v", d)
	}
	for _, bad := range []string{"acme", "Acme", "alice", "192.0.2.1", "usr_1", "dcr_1", "<script"} {
		if strings.Contains(out, bad) {
			t.Errorf("OB-03: the bundle has %s", bad)
		}
	}
}

// TestBundleKeepsTheVerdict: verdicts based on a comparison remain, because placeholders are
// compared.
func TestBundleKeepsTheVerdict(t *testing.T) {
	thread := Keys{Client: "app", Thread: "t", Code: "c"}
	asked := Step{At: noon, Kind: Authorize, Keys: thread, Request: Request{Params: []Param{
		{"code_challenge", "E9Melhoa..."}, {"redirect_uri", "https://one.example.com/cb"},
	}}}
	redeemed := func(challenge, redirect string) []Step {
		return []Step{asked, {
			At: noon.Add(time.Second), Kind: Token, Keys: thread, Answer: Answer{Status: 400, Error: "invalid_grant"},
			Request: Request{Params: []Param{
				{"grant_type", "authorization_code"}, {"code_verifier", "of the challenge " + challenge + "..."},
				{"redirect_uri", redirect},
			}},
		}}
	}
	for _, tt := range []struct {
		steps []Step
		want  Fault
	}{
		{redeemed("E9Melhoa", "https://one.example.com/cb"), CodeUnknown},
		{redeemed("E9Melhob", "https://one.example.com/cb"), VerifierWrong},
		{redeemed("E9Melhoa", "https://two.example.com/cb"), RedirectURIChanged},
	} {
		_, b := published(t, newAttempt(tt.steps, noon.Add(time.Minute)))
		if b.Fault != tt.want {
			t.Errorf("OB-03: got %s, want %s", b.Fault, tt.want)
		}
	}
}

// TestVocabulary: the vocabulary contains all kinds and causes, and no host of an operator.
func TestVocabulary(t *testing.T) {
	source, err := os.ReadFile("step.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(Kind|Cause) = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		if !slices.Contains(kinds, Kind(m[2])) && !slices.Contains(causes, Cause(m[2])) {
			t.Errorf("OB-03: a bundle would not show %s", m[0])
		}
	}
	p := &publisher{given: map[string]map[string]string{}}
	for _, sentence := range []string{
		"sign-in page", "consent page before the provider", "trailing slash", "The access token is not valid.",
		"The access token is not valid for this server.", "This operation needs more scope.",
		"This operation needs a stronger or more recent sign-in.", "This operation is not permitted.",
		"Authentication is required.", "The DPoP proof is not valid.", "The Authorization header is malformed.",
	} {
		if got := p.sentence(sentence); got != sentence {
			t.Errorf("OB-03: of %q it shows %q", sentence, got)
		}
	}
	p.own = []string{"claude.ai"}
	if got := p.url("https://claude.ai/oauth/x"); got != "https://host-1.example/oauth/part-1" {
		t.Errorf("OB-03: of the operator's own host it shows %s", got)
	}
}

// TestBundleOfCalls: a refused call keeps its verdict, and the tool name becomes a placeholder.
func TestBundleOfCalls(t *testing.T) {
	call := Step{
		At: noon, Kind: Call, Keys: Keys{Grant: "grt_1", Resource: "https://mcp.acme.example/mcp"},
		Request: Request{
			Header: []string{"via"},
			Params: []Param{{paramMethod, "tools/call"}, {paramTool, "acme_payroll"}, {paramToken, "active"}},
		},
		Answer: Answer{Status: 403, Error: "insufficient_scope", Outcome: "insufficient_scope"},
	}
	_, b := published(t, newAttempt([]Step{call}, noon.Add(time.Minute)))
	got := b.Events[0]
	if b.Fault != ScopeMissing || strings.Contains(b.Text, "acme") || got.param(paramTool) != "tool-1" ||
		got.param(paramMethod) != "tools/call" || got.Answer.Outcome != "insufficient_scope" ||
		!slices.Equal(got.Request.Header, []string{"via"}) {
		t.Errorf("OB-03: got %s: %+v", b.Text, got)
	}
	call.Request.Params, call.Answer.Error = []Param{{paramToken, "expired"}}, "invalid_token"
	if _, b := published(t, newAttempt([]Step{call}, noon.Add(time.Minute))); b.Fault != TokenNotRefreshed {
		t.Errorf("OB-03: got %s: %s", b.Fault, b.Text)
	}
}
