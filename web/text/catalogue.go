package text

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"
)

//go:embed */*.json
var builtin embed.FS

// Default is the language that has every text, and that people get who asked for none of ours.
const Default = "en"

// Catalogues are all languages. They do not change.
type Catalogues struct {
	languages []*Language // the default first, then by tag
	matcher   language.Matcher
	known     recognizer
}

// Language is the texts of one language.
type Language struct {
	// Tag is its BCP 47 tag, as directories and the metadata name it.
	Tag     string
	tag     language.Tag
	entries map[string]Entry
}

// Load reads the languages that are part of the program and over them those of more, which may
// be nil: texts that replace ours, and languages that we have not, in which an untranslated text
// is that of the language that they are a kind of (pt of pt-BR), or English. An error names the file and the text.
func Load(more fs.FS) (*Catalogues, error) {
	ours, err := ours()
	if err != nil || more == nil {
		return ours, err
	}
	all := make(map[string]*Language)
	for _, l := range ours.languages {
		all[l.Tag] = &Language{Tag: l.Tag, tag: l.tag, entries: maps.Clone(l.entries)}
	}
	if err := add(all, more, ours.languages[0].entries, partial); err != nil {
		return nil, err
	}
	c := newCatalogues(all)
	c.known = ours.known // what the program says, whatever is put over it
	return c, nil
}

// ours are the languages that are part of the program, read when they are first asked for.
var ours = sync.OnceValues(func() (*Catalogues, error) {
	english, err := read(builtin, Default)
	if err != nil {
		return nil, err
	}
	all := map[string]*Language{Default: english}
	if err := add(all, builtin, english.entries, complete); err != nil {
		return nil, err
	}
	c := newCatalogues(all)
	c.known = newRecognizer(english)
	return c, nil
})

// add reads the languages of a tree into all; check says what each must have.
func add(all map[string]*Language, tree fs.FS, want map[string]Entry, check checker) error {
	dirs, err := fs.ReadDir(tree, ".")
	if err != nil {
		return fmt.Errorf("text: list the languages: %w", err)
	}
	for _, d := range dirs {
		if !d.IsDir() {
			continue
		}
		l, err := read(tree, d.Name())
		if err == nil {
			err = check(l, want)
		}
		if err != nil {
			return err
		}
		under, ok := all[l.Tag]
		if !ok {
			under = &Language{Tag: l.Tag, tag: l.tag, entries: maps.Clone(nearest(all, l.tag, want))}
			under.entries[ownName] = Entry{Forms: map[string][]Piece{Other: {{Words: l.Tag}}}}
			all[l.Tag] = under
		}
		maps.Copy(under.entries, l.entries)
	}
	return nil
}

// nearest are the texts that a language begins with: of pt for pt-BR, and else the others.
func nearest(all map[string]*Language, tag language.Tag, others map[string]Entry) map[string]Entry {
	for tag = tag.Parent(); !tag.IsRoot(); tag = tag.Parent() {
		if l, ok := all[tag.String()]; ok {
			return l.entries
		}
	}
	return others
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

// Languages are all languages: English, then the others by their tags.
func (c *Catalogues) Languages() []*Language { return c.languages }

// read reads the files of one language.
func read(tree fs.FS, dir string) (*Language, error) {
	tag, err := language.Parse(dir)
	if err != nil {
		return nil, fmt.Errorf("text: %s is not the tag of a language (BCP 47), such as de or pt-BR", dir)
	}
	l := &Language{Tag: tag.String(), tag: tag, entries: make(map[string]Entry)}
	files, err := fs.ReadDir(tree, dir)
	if err != nil {
		return nil, fmt.Errorf("text: list %s: %w", dir, err)
	}
	for _, f := range files {
		page, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok {
			return nil, fmt.Errorf("text: %s is no file of texts: their names end in .json", path.Join(dir, f.Name()))
		}
		if err := l.readFile(tree, path.Join(dir, f.Name()), page); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// maxFile bounds a file of texts, in bytes. Ours have a few thousand.
const maxFile = 1 << 20

func (l *Language) readFile(tree fs.FS, file, page string) error {
	if info, err := fs.Stat(tree, file); err == nil && info.Size() > maxFile {
		return fmt.Errorf("text: %s is larger than 1 MiB", file)
	}
	body, err := fs.ReadFile(tree, file)
	if err != nil {
		return fmt.Errorf("text: read %s: %w", file, err)
	}
	var texts map[string]json.RawMessage
	if err := json.Unmarshal(body, &texts); err != nil {
		return fmt.Errorf("text: %s is not one JSON object: %w", file, err)
	}
	for name, raw := range texts {
		entry, err := newEntry(raw)
		if err != nil {
			return fmt.Errorf("text: %s: %s: %w", file, name, err)
		}
		l.entries[page+"."+name] = entry
	}
	return nil
}

// Entry is the text of a key ("signedout.lead").
func (l *Language) Entry(key string) (Entry, bool) {
	e, ok := l.entries[key]
	return e, ok
}

// ownName is the key of the name by which people choose the language. One that an operator adds has its
// tag until they name it: "English" would stand in the choice twice.
const ownName = "layout.name"

// Name is what the language calls itself.
func (l *Language) Name() string {
	if e, ok := l.entries[ownName]; ok {
		return e.Forms[Other][0].Words
	}
	return l.Tag
}

// Keys are the keys of all texts, in order.
func (l *Language) Keys() []string { return slices.Sorted(maps.Keys(l.entries)) }

// RightToLeft reports a language that is written from right to left.
func (l *Language) RightToLeft() bool {
	script, _ := l.tag.Script()
	return slices.Contains([]string{"Adlm", "Arab", "Hebr", "Nkoo", "Rohg", "Syrc", "Thaa"}, script.String())
}
