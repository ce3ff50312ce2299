package text

import (
	"maps"
	"regexp"
	"slices"
)

// pattern matches an English text that another part of the program may produce.
type pattern struct {
	key    string
	names  []string
	regexp *regexp.Regexp
}

// recognizer finds texts by their English form.
type recognizer struct {
	whole    map[string]string // keys of texts without values
	patterns []pattern
}

// Refusals is the file with English sentences that the program sends to clients and that users may
// see.
const Refusals = "refusal"

// Recognize finds the text in file Refusals whose English form is s, with its names and values.
func (c *Catalogues) Recognize(s string) (key string, values []any, ok bool) {
	known := c.known()
	if key, ok := known.whole[s]; ok {
		return key, nil, true
	}
	for _, p := range known.patterns {
		if m := p.regexp.FindStringSubmatch(s); m != nil {
			for i, name := range p.names {
				values = append(values, name, m[i+1])
			}
			return p.key, values, true
		}
	}
	return "", nil, false
}

func newRecognizer(english *Language) recognizer {
	r := recognizer{whole: make(map[string]string)}
	texts := english.own(Refusals)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		r.add(Refusals+"."+name, texts[name].Forms[Other])
	}
	return r
}

func (r *recognizer) add(key string, words []Piece) {
	if len(words) == 1 && words[0].Value == "" {
		r.whole[words[0].Words] = key
		return
	}
	p, source := pattern{key: key}, "^"
	seen := make(map[string]bool)
	for _, w := range words {
		switch {
		case w.Value == "":
			source += regexp.QuoteMeta(w.Words)
		case seen[w.Value]:
			source += "(?:.{1,300}?)"
		default:
			seen[w.Value] = true
			p.names = append(p.names, w.Value)
			source += "(.{1,300}?)"
		}
	}
	p.regexp = regexp.MustCompile(source + "$")
	r.patterns = append(r.patterns, p)
}
