package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"html/template"
	"io/fs"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/text"
)

// spoken returns the pages in a language.
func spoken(t testing.TB, tag string) *Pages {
	t.Helper()
	p := newPages(t, Config{}).For(tag)
	if p.Language() != tag {
		t.Fatalf("there are no pages in %s", tag)
	}
	return p
}

// PE-13: the templates accept the texts of every language.
func TestEveryLanguageHasPages(t *testing.T) {
	p := newPages(t, Config{})
	for _, l := range p.texts.Languages() {
		for _, page := range p.languages[l]().pages {
			if _, err := page(); err != nil {
				t.Error(err)
			}
		}
	}
	if len(p.Languages()) != 7 {
		t.Errorf("the languages are %v", p.Languages())
	}
}

func TestPagesSayTheirLanguage(t *testing.T) {
	for tag, want := range map[string]string{
		"en": "You are signed out", "de": "Sie sind abgemeldet", "ja": "サインアウトしました",
	} {
		w := record(spoken(t, tag), func(p *Pages, w http.ResponseWriter) { p.SignedOut(w, SignedOut{}) })
		body := w.Body.String()
		if !strings.Contains(body, `<html lang="`+tag+`" dir="ltr">`) || !strings.Contains(body, "<h1>"+want+"</h1>") {
			t.Errorf("PE-13: the page in %s:\n%s", tag, body)
		}
		if w.Header().Get("Content-Language") != tag || w.Header().Get("Vary") != "Accept-Language" {
			t.Errorf("PE-13: the headers in %s: %v", tag, w.Header())
		}
	}
}

// rendered translates and shows a template with its own catalogue.
func rendered(t *testing.T, source string, view any) (string, error) {
	t.Helper()
	texts, err := text.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Pages{shared: &shared{texts: texts}, language: texts.Match("en")}
	page := template.Must(template.New("x").Funcs(template.FuncMap{
		"t": notInlined, "n": notInlined, "strong": strong, "name": cleanName,
	}).Funcs(p.functions()).Parse(source))
	if err := (&translator{p.language, map[string]bool{}}).translate(page); err != nil {
		return "", err
	}
	var out strings.Builder
	err = page.Execute(&out, view)
	return out.String(), err
}

func TestTranslate(t *testing.T) {
	const values = `"day" .D "month" (strong (name .M)) "year" "2026"`
	view := map[string]any{"D": `<5 & "6"`, "M": "\u05d0<b>", "L": []string{"x", "y"}}
	for _, c := range []struct{ name, source, want string }{
		{"words", `<p>{{t "signedout.title"}}</p>`, `<p>Signed out</p>`},
		{"values stand in <bdi>, escaped", `<p>{{t "date.day" ` + values + `}}</p>`,
			`<p><bdi>&lt;5 &amp; &#34;6&#34;</bdi> <strong><bdi>` + "\u05d0" + `&lt;b&gt;</bdi></strong> <bdi>2026</bdi></p>`},
		{"values in an attribute have no element",
			`<p title="{{if .D}}{{t "date.day" "day" .D "month" .M "year" 1}}{{end}}">`,
			`<p title="&lt;5 &amp; &#34;6&#34; ` + "\u05d0" + `&lt;b&gt; 1">`},
		{"the variables of a range", `{{range $i, $x := .L}}{{t "date.day" "day" $x "month" . "year" $i}};{{end}}`,
			`<bdi>x</bdi> <bdi>x</bdi> <bdi>0</bdi>;<bdi>y</bdi> <bdi>y</bdi> <bdi>1</bdi>;`},
		{"an else, a with and a template",
			`{{define "p"}}{{t "signedout.title"}}{{end}}{{with .N}}{{else}}{{template "p" .}}{{end}}`,
			"Signed out"},
	} {
		t.Run("PE-13: "+c.name, func(t *testing.T) {
			got, err := rendered(t, c.source, view)
			if err != nil || got != c.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
	for _, c := range []struct{ name, source, want string }{
		{"an unknown text", `{{t "signedout.nothing"}}`, "there is no such text"},
		{"no plural forms", `{{n "signedout.title" 5}}`, "there is no such text, or not with plural forms"},
		{"a value too few", `{{t "date.day" "day" 1 "month" 2}}`, "the value year is missing"},
		{"a value too many", `{{t "signedout.title" "name" "x"}}`, "the text has no {name}"},
		{"a name without a value", `{{t "signedout.title" "name"}}`, "each value must have a name before it"},
		{"a key that is no word", `{{t .D}}`, "the key of a text must be a word in quotation marks"},
		{"no key", `{{t}}`, "stand alone and begin with the key"},
		{"in a pipeline", `{{t "signedout.title" | name}}`, "t and n stand alone"},
		{"as an argument", `{{name (t "signedout.title")}}`, "t and n stand alone"},
		{"in a condition", `{{if t "signedout.title"}}x{{end}}`, "t and n stand alone"},
		{"as a variable", `{{$x := t "signedout.title"}}`, "stand alone"},
	} {
		t.Run("PE-13: refuses "+c.name, func(t *testing.T) {
			if got, err := rendered(t, c.source, view); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestDate(t *testing.T) {
	at := time.Date(2026, 3, 9, 23, 5, 0, 0, time.FixedZone("", -3600))
	for tag, want := range map[string]string{
		"en": `<time datetime="2026-03-10T00:05:00Z">10 March 2026, 00:05 UTC</time>`,
		"de": `<time datetime="2026-03-10T00:05:00Z">10. März 2026, 00:05 Uhr UTC</time>`,
		"zh": `<time datetime="2026-03-10T00:05:00Z">2026年3月10日 00:05 UTC</time>`,
	} {
		if got := string(spoken(t, tag).date(at)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := spoken(t, "fr").day(at); got != `<time datetime="2026-03-10">10 mars 2026</time>` {
		t.Errorf("the day: %s", got)
	}
	if got := spoken(t, "en").date(time.Time{}); got != "" {
		t.Errorf("no time: %s", got)
	}
}

// goFiles calls look with every Go file of the program.
func goFiles(t *testing.T, look func(*ast.File)) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && slices.Contains([]string{"node_modules", "testdata", ".git"}, d.Name()) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err == nil {
			look(file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// said returns the calls of Say and Count in the program, by key.
func said(t *testing.T) map[string][]string {
	t.Helper()
	out := make(map[string][]string)
	goFiles(t, func(file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if key, names := saying(call); key != "" {
					out[key] = names
				}
			}
			return true
		})
	})
	return out
}

// saying returns the key of a call of Say or Count, and the names of its values.
func saying(call *ast.CallExpr) (key string, names []string) {
	first := 1
	switch exprName(call.Fun) {
	case "Say", "pages.Say", "text.Say":
	case "Count", "pages.Count":
		first, names = 2, []string{text.Number}
	default:
		return "", nil
	}
	key, ok := literalOf(call.Args[0])
	if !ok || !keyShape.MatchString(key) {
		return "", nil
	}
	for i := first; i < len(call.Args); i += 2 {
		name, _ := literalOf(call.Args[i])
		names = append(names, name)
	}
	return key, names
}

var keyShape = regexp.MustCompile(`^[a-z0-9_]+\.[a-z0-9_]+$`)

func exprName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return exprName(e.X) + "." + e.Sel.Name
	}
	return ""
}

func literalOf(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// PE-13: every key in Go code is in the catalogues, with the right values, and every text is used
// somewhere.
func TestEveryTextIsUsed(t *testing.T) {
	texts, err := text.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	english := texts.Match()
	tr := translator{english, make(map[string]bool)}
	base, err := layout()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range pageNames {
		page, err := pageIn(base, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.translate(page); err != nil {
			t.Error(err)
		}
	}
	for key, names := range said(t) {
		tr.used[key] = true
		e, ok := english.Entry(key)
		if !ok {
			t.Errorf("the program uses %s, which does not exist", key)
		}
		if e.Counted && !slices.Contains(e.Values(), text.Number) {
			names = slices.DeleteFunc(names, func(n string) bool { return n == text.Number })
		}
		slices.Sort(names)
		if !slices.Equal(names, e.Values()) {
			t.Errorf("the program says %s with %v, and the text has %v", key, names, e.Values())
		}
	}
	for _, key := range english.Keys() {
		page, _, _ := strings.Cut(key, ".")
		if !tr.used[key] && page != "date" && page != sentence.File {
			t.Errorf("no page says %s", key)
		}
	}
}

func constantOf(e ast.Expr) (string, bool) {
	if sum, ok := e.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
		a, first := constantOf(sum.X)
		b, second := constantOf(sum.Y)
		return a + b, first && second
	}
	return literalOf(e)
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if _, err := New(Config{}); err != nil {
			b.Fatal(err)
		}
	}
}
