package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/text"
)

// inEnglish lists the refusals that need no translation.
var inEnglish = []string{
	// Errors in an application's request: the page asks the user to report them to its developer.
	"The parameter 'client_id' is missing.", "The parameter 'redirect_uri' is missing.",
	"The parameter 'response_type' is missing.", "Only the response type 'code' is supported.",
	"Request objects are not supported.", "The client is not registered for the authorization code grant.",
	"PKCE is required: the parameter 'code_challenge' is missing.",
	"The parameter 'code_challenge' is not an S256 challenge.",
	"The parameter 'code_challenge_method' must be S256.", "This client has to push its authorization requests.",
	"The client did not authenticate when it pushed the request.",
	// In responses to programs.
	"The parameter 'grant_type' is missing.", "Too many requests are pushed at once.", "The request body is too large.",
	"Parameters must be sent in the request body, not in the URL.",
	"The request body must be application/x-www-form-urlencoded.", "The request body could not be read.",
	"The request body is not a well-formed form.", "This resource server may not have tokens of this provider.",
	"The parameter 'dpop_jkt' is not the key of the DPoP proof.",
	"The person is not signed in.", "Another person is signed in.", "The person has to prove more.",
	"The person has not consented to this request.", "The person has to decide about a call.",
	"The person has paused this application.",
	"The parameter 'max_age' must be a number of seconds.",
	"A clearance cannot be asked for with a device code. Open the page of the clearance, then call again.",
	// Only in the log: the page has its own texts.
	"too many wrong codes of devices", "no device waits under the code", "stale or foreign form",
	"the form was answered before", "unknown, used or foreign state",
	"the provider sent the browser here without a state: no sign-in had begun", "the link is another person's",
	"Confirm first that it is you.", "The person did not say whether the account is theirs.",
	"The person did not want the account connected.",
}

// PE-13: refusals that a user can see on a page are in file refusal of every language.
func TestPE13RefusalsAreInTheLanguageOfTheirPerson(t *testing.T) {
	catalogues, err := text.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	var found int
	for _, dir := range []string{
		"../../authserver", "../../authserver/internal/entry", "../../authserver/internal/flow",
		"../../authserver/internal/account", "../../authserver/internal/binding", "../../authserver/internal/connect",
		"../../thirdparty",
	} {
		for _, said := range refusals(t, dir) {
			found++
			if _, _, ok := catalogues.Recognize(said); !ok && !slices.Contains(inEnglish, said) {
				t.Errorf("%s: %q is in no language but English", dir, said)
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d refusals", found)
	}
}

// refusals returns the constant descriptions of a package's protocol errors.
func refusals(t *testing.T, dir string) (out []string) {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 || exprName(call.Fun) != "oauth.NewError" {
				return true
			}
			if s, ok := constantOf(call.Args[1]); ok {
				out = append(out, s)
			}
			return true
		})
	}
	return out
}
