package text

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// complete checks a built-in language, which must have every text.
func complete(l *Language, want map[string]Entry) error {
	texts, err := l.all()
	if err != nil {
		return err
	}
	var wrong []error
	for key := range want {
		if _, ok := texts[key]; !ok {
			wrong = append(wrong, fault(l, key, "is missing"))
		}
	}
	return errors.Join(append(wrong, partial(l, want))...)
}

// PE-13: the built-in languages are complete: no text is missing or superfluous.
func TestEveryLanguageIsWhole(t *testing.T) {
	c, err := Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	english, err := c.Languages()[0].all()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range c.Languages() {
		tags = append(tags, l.Tag)
		if err := complete(l, english); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Join(tags, " "); got != "en de es fr ja pt zh" {
		t.Errorf("the languages are %s", got)
	}
}

// PE-13: each possible difference of a language from English is found and reported with its file
// and text.
func TestFaultsAreNamed(t *testing.T) {
	english := map[string]Entry{}
	for key, raw := range map[string]string{
		"p.plain": `"One {name} and {host}"`, "p.many": `{"one": "one thing of {name}", "other": "{n} things of {name}"}`,
	} {
		e, err := newEntry([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		english[key] = e
	}
	const many, plain = `"many": {"one": "{n} x {name}", "other": "{n} x {name}"}`, `"plain": "{host} {name}"`
	for _, c := range []struct{ name, file, want string }{
		{"whole", `{` + plain + `, ` + many + `}`, ""},
		{"the form one need not name the number",
			`{` + plain + `, "many": {"one": "ein x {name}", "other": "{n} x {name}"}}`,
			""},
		{"a missing text", `{` + plain + `}`, "text: de/p.json: many is missing"},
		{"a text too many",
			`{` + plain + `, ` + many + `, "more": "x"}`,
			"text: de/p.json: more is unknown: English has no such text"},
		{"a missing value", `{"plain": "{host}", ` + many + `}`, "text: de/p.json: plain lacks {name}"},
		{"an unknown value",
			`{"plain": "{host} {name} {nmae}", ` + many + `}`,
			"text: de/p.json: plain has {nmae}, which English has not"},
		{"a missing value in one form",
			`{` + plain + `, "many": {"one": "1", "other": "{n} {name}"}}`,
			"text: de/p.json: many lacks {name}"},
		{"a missing number",
			`{` + plain + `, "many": {"one": "{name}", "other": "{name}"}}`,
			"text: de/p.json: many lacks {n}"},
		{"a missing form",
			`{` + plain + `, "many": {"other": "{n} {name}"}}`,
			"text: de/p.json: many lacks the plural form one"},
		{"a form of other languages",
			`{` + plain + `, "many": {"one": "{n} {name}", "few": "{n} {name}", "other": "{n} {name}"}}`,
			"text: de/p.json: many has the plural form few, which this language has not"},
		{"no plural forms", `{` + plain + `, "many": "{n} {name}"}`,
			"text: de/p.json: many has plural forms in one of this language and English alone"},
		{"a lonely brace", `{"plain": "{host} {name} {", ` + many + `}`,
			`text: de/p.json: plain: has a brace outside a {name} in " {"`},
		{"a template in it", `{"plain": "{host} {name} {{.}}", ` + many + `}`,
			`text: de/p.json: plain: has a brace outside a {name} in " {{.}}"`},
		{"an empty text", `{"plain": " ", ` + many + `}`, "text: de/p.json: plain: is empty"},
		{"no JSON", `{`, "text: de/p.json is not one JSON object: unexpected end of JSON input"},
		{"a number",
			`{"plain": 5, ` + many + `}`,
			"text: de/p.json: plain: is neither a text nor an object of plural forms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := read(fstest.MapFS{"de/p.json": {Data: []byte(c.file)}}, "de")
			if err == nil {
				err = complete(l, english)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// PE-13: an administrator's texts replace the built-in ones, and an additional language falls back
// to English.
func TestLoadMore(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	c, err := Load(fstest.MapFS{
		"de/signedout.json": file(`{"title": "Tschüss"}`), "ar/signedout.json": file(`{"title": "مع السلامة"}`),
		"de-AT/signedout.json": file(`{"heading": "Servus"}`),
		"nl/layout.json":       file(`{"name": "Nederlands"}`), "README.md": file("not a language"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ tag, key, want string }{
		{"de", "signedout.title", "Tschüss"}, {"de", "signedout.heading", "Sie sind abgemeldet"},
		{"ar", "signedout.title", "مع السلامة"}, {"ar", "signedout.heading", "You are signed out"},
		{"en", "signedout.title", "Signed out"},
		// falls back to German
		{"de-AT", "signedout.heading", "Servus"}, {"de-AT", "signedout.title", "Tschüss"},
		{"de-AT", "layout.name", "de-AT"},
		{"ar", "layout.name", "ar"}, {"nl", "layout.name", "Nederlands"}, // never a second "English" in the menu
	} {
		e, _ := c.Match(tt.tag).Entry(tt.key)
		if got := e.Forms[Other][0].Words; got != tt.want {
			t.Errorf("%s of %s: got %q, want %q", tt.key, tt.tag, got, tt.want)
		}
	}
	if !c.Match("ar").RightToLeft() || c.Match("de").RightToLeft() {
		t.Error("Arabic is written from right to left, German is not")
	}
	for name, want := range map[string]string{
		"klingonisch/a.json": "klingonisch is not the tag of a language", "de/notes.txt": "must end in .json",
		"de/nopage.json": "de/nopage.json: title is unknown", "de/signedout.json": "",
	} {
		_, err := Load(fstest.MapFS{name: file(`{"title": "x"}`)})
		if got := err; want == "" && got != nil || want != "" && (got == nil || !strings.Contains(got.Error(), want)) {
			t.Errorf("%s: got %v, want %q", name, got, want)
		}
	}
}

// PE-13: ui_locales, then Accept-Language, then English. Invalid preferences are skipped.
func TestMatch(t *testing.T) {
	c, err := Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		wishes []string
		want   string
	}{
		{nil, "en"}, {[]string{""}, "en"}, {[]string{"de"}, "de"}, {[]string{"de-CH-1996"}, "de"},
		{[]string{"pt-BR,pt;q=0.9,en;q=0.8"}, "pt"}, {[]string{"en;q=0.5, fr ; q=0.7"}, "fr"},
		{[]string{"xx es"}, "es"}, {[]string{"sv nl"}, "en"}, {[]string{"sv", "ja-JP,ja"}, "ja"},
		{[]string{"", "zh-CN"}, "zh"}, {[]string{"zh-Hans-SG"}, "zh"}, {[]string{"fr", "de"}, "fr"},
		{[]string{"*"}, "en"}, {[]string{"fr;q=0,de;q=0.1"}, "de"}, {[]string{"de_DE"}, "de"},
		{[]string{"<script>", "de;q=x", "fr"}, "fr"}, {[]string{strings.Repeat("sv,", 5000), "de"}, "de"},
		{[]string{strings.Repeat("a", 1<<20), "de"}, "de"},
	} {
		if got := c.Match(tt.wishes...).Tag; got != tt.want {
			t.Errorf("%.80q: got %s, want %s", tt.wishes, got, tt.want)
		}
	}
}

func TestForms(t *testing.T) {
	c, err := Load(fstest.MapFS{"ru/signedout.json": {Data: []byte(`{"title": "x"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	for tag, want := range map[string]string{
		"en": "other one other other other", "fr": "one one other other other", "ja": "other other other other other",
		"ru": "many one few many many",
	} {
		l := c.Match(tag)
		var got []string
		for _, n := range []int{0, 1, 2, 11, 1_000_000} {
			got = append(got, l.Form(n))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", tag, got, want)
		}
	}
	if got := slices.Sorted(maps.Keys(c.Match("ru").forms())); strings.Join(got, " ") != "few many one other" {
		t.Errorf("the forms of Russian: %v", got)
	}
}

func BenchmarkMatch(b *testing.B) {
	c, err := Load(nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c.Match("", "", "de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7")
	}
}
