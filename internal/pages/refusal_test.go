package pages

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"html/template"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/text"
	"github.com/mcp-authd/mcp-authd/web"
)

// inEnglish lists the descriptions of protocol errors that need no translation.
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

// PE-13: a protocol error that a user can see on a page carries a sentence with a key.
func TestPE13RefusalsAreInTheLanguageOfTheirPerson(t *testing.T) {
	var found int
	for _, dir := range []string{
		"../../authserver", "../../authserver/internal/entry", "../../authserver/internal/flow",
		"../../authserver/internal/account", "../../authserver/internal/binding", "../../authserver/internal/connect",
		"../../thirdparty",
	} {
		for _, said := range refusals(t, dir) {
			found++
			if !slices.Contains(inEnglish, said) {
				t.Errorf("%s: %q is in no language but English", dir, said)
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d refusals", found)
	}
}

// refusals returns the constant descriptions of a package's protocol errors without a sentence.
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

// PE-13: the English texts in file refusal are the sentences of the program, word for word.
func TestRefusalsAreWhatTheProgramSays(t *testing.T) {
	want, said := textsOf(t, text.Default), make(map[string]bool)
	goFiles(t, func(file *ast.File) {
		if file.Name.Name == "sentence" {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			args := call.Args
			switch exprName(call.Fun) {
			case "oauth.NewError":
				if s, ok := constantOf(args[1]); ok && slices.Contains(slices.Collect(maps.Values(want)), s) {
					t.Errorf("package %s says %q without its key", file.Name.Name, s)
				}
				return true
			case "sentence.New":
			case "sentence.NewError":
				args = args[1:]
			default:
				return true
			}
			english, constant := constantOf(args[0])
			name, named := constantOf(args[1])
			if !constant || !named {
				t.Errorf("a sentence of package %s is not constant", file.Name.Name)
			}
			if said[name] = true; name != "" && english != want[name] {
				t.Errorf("the program says %q, and the text %s is %q", english, name, want[name])
			}
			for i := 2; i < len(args); i += 2 {
				if value, _ := constantOf(args[i]); !strings.Contains(english, "{"+value+"}") {
					t.Errorf("%q has no {%s}", english, value)
				}
			}
			return true
		})
	})
	for name := range want {
		if !said[name] {
			t.Errorf("the program does not say %s", name)
		}
	}
}

// textsOf returns the texts of file refusal of a language, by name.
func textsOf(t *testing.T, tag string) (out map[string]string) {
	t.Helper()
	body, err := web.Files.ReadFile("text/" + tag + "/" + sentence.File + ".json")
	if err == nil {
		err = json.Unmarshal(body, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// PE-13: a page in English shows the text that clients get. Every other page shows each sentence in
// its language, with the values escaped.
func TestSentencesInEveryLanguage(t *testing.T) {
	base := newPages(t, Config{})
	for _, l := range base.texts.Languages() {
		p, texts := base.For(l.Tag), textsOf(t, l.Tag)
		for name, english := range textsOf(t, text.Default) {
			values := []string{"provider", `<b> & {address}`, "address", `"https://a.example/mcp"`}
			var plain, escaped []string
			for i := 0; i < len(values); i += 2 {
				plain = append(plain, "{"+values[i]+"}", values[i+1])
				escaped = append(escaped, "{"+values[i]+"}", "<bdi>"+template.HTMLEscapeString(values[i+1])+"</bdi>")
			}
			want := strings.NewReplacer(escaped...).Replace(template.HTMLEscapeString(texts[name]))
			if l.Tag == text.Default {
				want = "<bdi>" + template.HTMLEscapeString(strings.NewReplacer(plain...).Replace(english)) + "</bdi>"
			}
			told := Told(sentence.New(english, name, values...))
			if got := string(p.html(told)); texts[name] == "" || got != want {
				t.Errorf("%s in %s: got %s, want %s", name, l.Tag, got, want)
			}
			if got, want := p.Plain(told), strings.NewReplacer(plain...).Replace(texts[name]); got != want {
				t.Errorf("%s in %s without elements: got %s, want %s", name, l.Tag, got, want)
			}
		}
	}
	for tag, want := range map[string]string{
		"en": "<bdi>Something &lt;else&gt; altogether.</bdi>",
		"de": `<bdi lang="en">Something &lt;else&gt; altogether.</bdi>`,
	} {
		told := Told(sentence.New("Something <else> altogether.", ""))
		if got := string(spoken(t, tag).html(told)); got != want {
			t.Errorf("without a translation in %s: got %s, want %s", tag, got, want)
		}
	}
	told := Told(sentence.New("The form is too large.", "form_large"))
	if got := string(spoken(t, "de").html(told)); got != "Das Formular ist zu groß." {
		t.Errorf("got %s", got)
	}
}
