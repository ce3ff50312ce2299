package text

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"

	"github.com/mcp-authd/mcp-authd/web"
)

// Default is the language that has every text. It is used if no requested language is available.
const Default = "en"

// Catalogues contains all languages. It is immutable.
type Catalogues struct {
	languages []*Language // the default first, then by tag
	matcher   language.Matcher
}

// Language contains the texts of one language.
type Language struct {
	// Tag is its BCP 47 tag, which is also the name of its directory.
	Tag   string
	tag   language.Tag
	files map[string]file
	under *Language // fallback for missing texts, or nil
}

// file returns the texts of one page by name. They are read on first use, because a server shows
// few of them.
type file func() (map[string]Entry, error)

// Load reads the built-in languages, and over them the languages in more, which may be nil. These
// can replace built-in texts and add languages. A text that an additional language lacks is taken
// from the more general language (pt for pt-BR), or from English. An error names the file and the
// text.
func Load(more fs.FS) (*Catalogues, error) {
	ours, err := ours()
	if err != nil || more == nil {
		return ours, err
	}
	all := make(map[string]*Language)
	for _, l := range ours.languages {
		all[l.Tag] = l
	}
	english := ours.languages[0]
	want, err := english.all()
	if err != nil {
		return nil, err
	}
	dirs, err := directories(more)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		l, err := read(more, dir)
		if err == nil {
			err = partial(l, want)
		}
		if err != nil {
			return nil, err
		}
		l.under = nearest(all, l.tag, english)
		all[l.Tag] = l
	}
	return newCatalogues(all), nil
}

// ours returns the built-in languages. A test checks that each has exactly the right texts; this is
// not checked at the start of a server.
var ours = sync.OnceValues(func() (*Catalogues, error) {
	all := make(map[string]*Language)
	builtin, err := fs.Sub(web.Files, "text")
	if err != nil {
		return nil, err
	}
	dirs, err := directories(builtin)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		l, err := read(builtin, dir)
		if err != nil {
			return nil, err
		}
		all[l.Tag] = l
	}
	return newCatalogues(all), nil
})

func directories(tree fs.FS) (out []string, err error) {
	entries, err := fs.ReadDir(tree, ".")
	if err != nil {
		return nil, fmt.Errorf("text: list the languages: %w", err)
	}
	for _, d := range entries {
		if d.IsDir() {
			out = append(out, d.Name())
		}
	}
	return out, nil
}

// nearest returns the fallback of a language: its built-in version, the more general language (pt
// for pt-BR), or English.
func nearest(all map[string]*Language, tag language.Tag, english *Language) *Language {
	for ; !tag.IsRoot(); tag = tag.Parent() {
		if l, ok := all[tag.String()]; ok {
			return l
		}
	}
	return english
}

func newCatalogues(all map[string]*Language) *Catalogues {
	c := &Catalogues{languages: []*Language{all[Default]}}
	for _, tag := range slices.Sorted(maps.Keys(all)) {
		if tag != Default {
			c.languages = append(c.languages, all[tag])
		}
	}
	var tags []language.Tag
	for _, l := range c.languages {
		tags = append(tags, l.tag)
	}
	c.matcher = language.NewMatcher(tags)
	return c
}

// Languages returns all languages: English, then the others by tag.
func (c *Catalogues) Languages() []*Language { return c.languages }

// read lists the files of one language.
func read(tree fs.FS, dir string) (*Language, error) {
	tag, err := language.Parse(dir)
	if err != nil {
		return nil, fmt.Errorf("text: %s is not the tag of a language (BCP 47), such as de or pt-BR", dir)
	}
	l := &Language{Tag: tag.String(), tag: tag, files: make(map[string]file)}
	entries, err := fs.ReadDir(tree, dir)
	if err != nil {
		return nil, fmt.Errorf("text: list %s: %w", dir, err)
	}
	for _, f := range entries {
		page, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok {
			return nil, fmt.Errorf("text: the name %s must end in .json", path.Join(dir, f.Name()))
		}
		l.files[page] = sync.OnceValues(func() (map[string]Entry, error) {
			return readFile(tree, path.Join(dir, f.Name()))
		})
	}
	return l, nil
}

// maxFile limits a file of texts, in bytes. The built-in ones have a few thousand.
const maxFile = 1 << 20

func readFile(tree fs.FS, file string) (map[string]Entry, error) {
	if info, err := fs.Stat(tree, file); err == nil && info.Size() > maxFile {
		return nil, fmt.Errorf("text: %s is larger than 1 MiB", file)
	}
	body, err := fs.ReadFile(tree, file)
	if err != nil {
		return nil, fmt.Errorf("text: read %s: %w", file, err)
	}
	var texts map[string]json.RawMessage
	if err := json.Unmarshal(body, &texts); err != nil {
		return nil, fmt.Errorf("text: %s is not one JSON object: %w", file, err)
	}
	out := make(map[string]Entry, len(texts))
	for name, raw := range texts {
		entry, err := newEntry(raw)
		if err != nil {
			return nil, fmt.Errorf("text: %s: %s: %w", file, name, err)
		}
		out[name] = entry
	}
	return out, nil
}

// ownName is the key of a language's name in the language menu. An additional language without the
// text shows its tag; otherwise "English" would appear twice.
const ownName = "layout.name"

// Entry returns the text of a key ("signedout.lead").
func (l *Language) Entry(key string) (Entry, bool) {
	page, name, _ := strings.Cut(key, ".")
	for at := l; at != nil; at = at.under {
		if key == ownName && at.Tag != l.Tag {
			return Entry{Forms: map[string][]Piece{Other: {{Words: l.Tag}}}}, true
		}
		if e, ok := at.own(page)[name]; ok {
			return e, true
		}
	}
	return Entry{}, false
}

// own returns the texts of a page in the files of l. Texts of an unreadable file are missing: Load
// refuses such an additional file, and a test finds a built-in one.
func (l *Language) own(page string) map[string]Entry {
	if f, ok := l.files[page]; ok {
		texts, _ := f()
		return texts
	}
	return nil
}

// all returns the texts in the files of l, by key.
func (l *Language) all() (map[string]Entry, error) {
	out := make(map[string]Entry)
	for page, f := range l.files {
		texts, err := f()
		if err != nil {
			return nil, err
		}
		for name, e := range texts {
			out[page+"."+name] = e
		}
	}
	return out, nil
}

// Name returns the language's native name.
func (l *Language) Name() string {
	if e, ok := l.Entry(ownName); ok {
		return e.Forms[Other][0].Words
	}
	return l.Tag
}

// Keys returns the keys of all texts, sorted.
func (l *Language) Keys() []string {
	all := make(map[string]bool)
	for ; l != nil; l = l.under {
		for page := range l.files {
			for name := range l.own(page) {
				all[page+"."+name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// RightToLeft reports whether the language is written from right to left.
func (l *Language) RightToLeft() bool {
	script, _ := l.tag.Script()
	return slices.Contains([]string{"Adlm", "Arab", "Hebr", "Nkoo", "Rohg", "Syrc", "Thaa"}, script.String())
}
