package archtest

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pagetest"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var update = flag.Bool("update", false, "write docs/reference/errors.md")

// TestErrorsReference checks that the page about errors lists each code with its status, and each
// sentence that our code sends with it (DL-05).
func TestErrorsReference(t *testing.T) {
	codes, sentences := map[string]string{}, map[string][]string{} // by constant name; by code
	m := load(t)
	for _, f := range m.files {
		if f.path == "oauth/error.go" {
			codes = codesIn(f.syntax)
		}
	}
	for _, f := range m.files {
		if strings.HasSuffix(f.path, "_test.go") || strings.Contains(f.path, "testkit") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && lastName(call.Fun) == "Refuse" {
				return false // only for the log
			}
			if code, sentence := sentenceOf(n, codes); sentence != "" && !slices.Contains(sentences[code], sentence) {
				sentences[code] = append(sentences[code], sentence)
			}
			return true
		})
	}
	if len(codes) < 20 || len(sentences["invalid_grant"]) < 3 {
		t.Fatalf("found %d codes, and %v for invalid_grant", len(codes), sentences["invalid_grant"])
	}
	const refresh = "go test ./internal/archtest -run TestErrorsReference"
	pagetest.Is(t, *update, "reference/errors.md", errorsPage(codes, sentences, refresh), refresh)
}

// codesIn returns the constants of type Code.
func codesIn(f *ast.File) map[string]string {
	out := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == "Code" {
			out[spec.Names[0].Name] = literal(spec.Values[0])
		}
		return true
	})
	return out
}

var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

// sentenceOf returns the code and the sentence of a call of oauth.NewError or sentence.NewError.
func sentenceOf(n ast.Node, codes map[string]string) (code, sentence string) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) < 2 || lastName(call.Fun) != "NewError" {
		return "", ""
	}
	sentence = written(call.Args[1])
	if !strings.ContainsFunc(sentence, unicode.IsLetter) {
		return "", "" // the text is in a variable
	}
	return codes[lastName(call.Args[0])], placeholder.ReplaceAllString(sentence, "…")
}

// written returns a text as in the source, with … for inserted parts.
func written(e ast.Expr) string {
	if sum, ok := e.(*ast.BinaryExpr); ok {
		return strings.ReplaceAll(written(sum.X)+written(sum.Y), "……", "…")
	}
	return cmp.Or(literal(e), "…")
}

func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// literal returns the text of a literal, or "".
func literal(e ast.Expr) string {
	if e, ok := e.(*ast.BasicLit); ok {
		s, _ := strconv.Unquote(e.Value) // a number has no quotes, and gives ""
		return s
	}
	return ""
}

func errorsPage(codes map[string]string, sentences map[string][]string, refresh string) string {
	var b strings.Builder
	b.WriteString("# Errors\n\n<!-- Made by: " + refresh + " -update -->\n\n")
	b.WriteString(pagetest.Words("This page lists the values of `error` in responses to clients, with the HTTP status and the fixed " +
		"sentences of `error_description`. An ellipsis (…) marks a part that depends on the request. " +
		"Errors of [the administration API](../api.md#requests-and-answers) are problem documents. To find out why an " +
		"attempt failed, and who has to act, see [faults](faults.md)."))
	for _, code := range slices.Sorted(maps.Values(codes)) {
		fmt.Fprintf(&b, "\n## %s\n\nStatus %d.\n", code, oauth.NewError(oauth.Code(code), "").Status())
		all := slices.Sorted(slices.Values(sentences[code]))
		if len(all) > 0 {
			b.WriteString("\n| sentence |\n|---|\n")
		}
		for _, s := range all {
			fmt.Fprintf(&b, "| %s |\n", strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`).Replace(pagetest.Cell(s)))
		}
	}
	return b.String()
}
