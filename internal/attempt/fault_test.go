package attempt

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pagetest"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var update = flag.Bool("update", false, "write the tables of docs/attempts.md and docs/clients.md")

// TestFaultsAreData: each fault has exactly one complete row in faults.json, and the manual's table
// is built from the rows.
func TestFaultsAreData(t *testing.T) {
	source, err := os.ReadFile("fault.go")
	if err != nil {
		t.Fatal(err)
	}
	var named []Fault
	for _, m := range regexp.MustCompile(`Fault = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		named = append(named, Fault(m[1]))
	}
	var table strings.Builder
	table.WriteString("| `fault` | what happened | whose turn |\n|---|---|---|\n")
	rows := map[Fault]int{}
	for _, e := range Faults() {
		rows[e.Fault]++
		if e.What == "" || e.Advice.of(e.Whose) == "" || e.Person == "" || e.Operator == "" || e.Client == "" {
			t.Errorf("OB-01: %s lacks something: %+v", e.Fault, e)
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", e.Fault, e.What, e.Whose)
	}
	for _, fault := range named {
		if rows[fault] != 1 {
			t.Errorf("OB-01: %s has %d rows in faults.json, want 1", fault, rows[fault])
		}
	}
	if len(rows) != len(named) {
		t.Errorf("OB-01: faults.json has %d faults, the program %d", len(rows), len(named))
	}
	tableIn(t, "../../docs/attempts.md", "faults", table.String())
	const refresh = "go test ./internal/attempt -run TestFaultsAreData"
	pagetest.Is(t, *update, "reference/faults.md", faultsPage(refresh), refresh)
}

// faultsPage returns the documentation page for faults.json (DL-05).
func faultsPage(refresh string) string {
	var b strings.Builder
	b.WriteString("# Faults\n\n<!-- Made by: " + refresh + " -update -->\n\n")
	b.WriteString(pagetest.Words("Use this page to find out why an [attempt](../attempts.md) to get a token failed, and how each side can fix it. " +
		"`mcp-authd attempt explain REFERENCE` names the fault of one attempt; the names do not change."))
	for _, e := range Faults() {
		fmt.Fprintf(&b, "\n## %s\n\n%s Whose turn: %s.\n\n", e.Fault, e.What, e.Whose)
		fmt.Fprintf(&b, "| who | what to do |\n|---|---|\n| the person | %s |\n| the operator | %s |\n| the client | %s |\n",
			pagetest.Cell(e.Person), pagetest.Cell(e.Operator), pagetest.Cell(e.Client))
	}
	return b.String()
}

// tableIn checks, or with -update writes, the table between two comments of a page.
func tableIn(t *testing.T, page, name, table string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
	before, rest, found := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table %s", page, name)
	}
	want := before + begin + "\n" + table + "\n" + end + after
	switch {
	case want == string(text):
	case !*update:
		t.Errorf("the table %s of %s is not that of its data: go test ./internal/attempt -update", name, page)
	default:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVerdictsByCause: a verdict depends on the cause of a refusal, not on the description.
func TestVerdictsByCause(t *testing.T) {
	code := []Param{{"grant_type", "authorization_code"}, {"code_verifier", "of the challenge E9Melhoa..."}}
	for _, tt := range []struct {
		kind  Kind
		error string
		cause Cause
		want  Fault
	}{
		{Token, "invalid_grant", CauseSpent, CodeSpent},
		{Token, "invalid_grant", CauseExpired, CodeExpired},
		{Token, "invalid_grant", CauseUnknown, CodeUnknown},
		{Token, "invalid_client", CauseClientDeleted, ClientUnknown},
		{Token, "invalid_client", CauseClientUnknown, ClientUnknown},
		{Token, "invalid_client", "", CredentialsWrong},
		{Refresh, "invalid_grant", CauseSpent, RefreshTokenSpent},
		{Refresh, "invalid_grant", CauseRevoked, GrantEnded},
		{Authorize, "access_denied", CauseNotPermitted, PersonNotPermitted},
		{Consent, "access_denied", CauseNotPermitted, PersonNotPermitted},
		{Consent, "access_denied", "", PersonRefused},
		// RU-12: the step and the error code do not determine the cause
		{Registration, "invalid_redirect_uri", CauseScheme, RedirectSchemeRefused},
		{Registration, "invalid_redirect_uri", CauseInClear, RedirectInClear},
		{Registration, "invalid_client_metadata", "", RegistrationRefused},
		{Provider, "server_error", CauseProvider, ProviderRefused},
		{Provider, "temporarily_unavailable", CauseProvider, ProviderRefused},
		{Refresh, "temporarily_unavailable", CauseProvider, ProviderRefused},
		{Provider, "temporarily_unavailable", CauseStorage, ServerFailed},
		{Provider, "access_denied", CauseRule, PersonNotPermitted},
		{Provider, "invalid_request", CauseForm, FormLost},
		{Authorize, "invalid_client", CauseDocument, DocumentUnusable},
		{Authorize, "temporarily_unavailable", CauseDocumentAway, DocumentUnusable},
		{Token, "invalid_client", CauseDocument, DocumentUnusable},
		{Authorize, "invalid_client", CauseClientUnknown, ClientUnknown},
		{Authorize, "invalid_client", "", RequestRefused},
		{Refresh, "invalid_client", CauseClientDeleted, ClientUnknown},
		{Refresh, "invalid_client", "", CredentialsWrong},
		{Refresh, "temporarily_unavailable", CausePaused, AccessPaused},
		{Authorize, "unauthorized_client", CauseHeld, ApplicationHeld},
		{Refresh, "temporarily_unavailable", CauseHeld, ApplicationHeld},
		{SignIn, "invalid_request", CauseForm, FormLost},
		{SignIn, "invalid_request", CauseOrigin, FormRefused},
		{SignIn, "access_denied", "", SignInRefused},
		{Consent, "invalid_request", CauseForm, FormLost},
		{Authorize, "invalid_request", CauseHost, HostUnknown},
		{Authorize, "server_error", "", ServerFailed},
	} {
		step := Step{
			At: noon, Kind: tt.kind, Request: Request{Params: code},
			Answer: Answer{Status: 400, Error: tt.error, Cause: tt.cause, Reason: "used before, expired, deleted"},
		}
		if tt.cause != "" && !slices.Contains(causes, tt.cause) {
			t.Errorf("%q is not in causes", tt.cause)
		}
		if got := Judge([]Step{step}, noon).Fault; got != tt.want {
			t.Errorf("OB-01: %s, %s because of %q: got %s, want %s", tt.kind, tt.error, tt.cause, got, tt.want)
		}
	}
}

// TestVerdictOfSpentGrant: a call that fails because a code was used twice is the client's fault,
// not the user's.
func TestVerdictOfSpentGrant(t *testing.T) {
	spent := Step{
		Reference: "SPENT", At: noon, Kind: Token,
		Answer: Answer{Status: 400, Error: "invalid_grant", Cause: CauseSpent},
		Request: Request{Params: []Param{
			{"grant_type", "authorization_code"}, {"code_verifier", "of the challenge x"},
		}},
	}
	call := Step{
		At: noon.Add(time.Second), Kind: Call, Answer: Answer{Status: 401, Error: "invalid_token"},
		Request: Request{Params: []Param{{paramToken, string(TokenEnded)}}},
	}
	refresh := Step{
		At: call.At, Kind: Refresh, Answer: Answer{Status: 400, Error: "invalid_grant", Cause: CauseRevoked},
	}
	for _, failed := range []Step{call, refresh} {
		if got := Judge([]Step{spent, failed}, call.At); got.Fault != CodeSpent || got.Decided != "SPENT" {
			t.Errorf("OB-01: a %s after a spent code: got %s by %q", failed.Kind, got.Fault, got.Decided)
		}
	}
	if got := Judge([]Step{call}, call.At).Fault; got != AccessEnded {
		t.Errorf("OB-01: a call alone: got %s", got)
	}
}

// TestWaitingApproval: a tool call that waits for approval does not lack a scope.
func TestWaitingApproval(t *testing.T) {
	call := Step{At: noon, Kind: Call, Answer: Answer{
		Status: 403, Error: "insufficient_scope", Outcome: oauth.OutcomeClearanceRequired,
		Params: []Param{{"scope", "notes clearance:clr_1"}},
	}}
	if got := Judge([]Step{call}, noon); got.Fault != ApprovalWaiting || got.Whose != OfPerson {
		t.Errorf("RU-12: got %s, whose turn: %s", got.Fault, got.Whose)
	}
}

// TestProbeAgentHidesNothing: OB-01. Anyone can send the User-Agent of the commands doctor and
// check, so requests with it are recorded like others.
func TestProbeAgentHidesNothing(t *testing.T) {
	now, store := noon, testStore(t)
	r := testRecorder(store, &now, new(bytes.Buffer))
	probe := httptest.NewRequest("POST", "/mcp", nil)
	probe.Header.Set("User-Agent", "mcp-authd-probe")
	r.End(probe, request.New(NewReference(), noon, netip.MustParseAddr("192.0.2.1")),
		Taken{Kind: Token, Path: "/token", Answer: Answer{Status: 400, Error: "invalid_request"}})
	r.Refused(probe, netip.MustParseAddr("198.51.100.1"), oauth.Decision{Status: 401},
		Presented{State: TokenNone}, nil)
	r.Write(context.Background())
	got, err := Finder{Store: store, Now: func() time.Time { return now }}.Find(context.Background(), Query{})
	if err != nil || len(got) != 2 {
		t.Fatalf("OB-01: got %d attempts, %v, want 2", len(got), err)
	}
	for _, a := range got {
		if a.Agent != "mcp-authd-probe" {
			t.Errorf("OB-01: the agent of an attempt is %q", a.Agent)
		}
	}
}
