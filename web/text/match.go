package text

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"
)

const (
	maxWishes = 16 // how many languages of a list are looked at
	maxTag    = 64 // bytes of one
)

// Match is the language for a person who gives these wishes, the first before the second: each a
// list as Accept-Language has it (RFC 9110 §12.5.4) or ui_locales (OpenID Connect Core §3.1.2.1),
// or "". A list in which nothing fits, or makes sense, does not count; English is left in the end.
func (c *Catalogues) Match(wishes ...string) *Language {
	for _, list := range wishes {
		if l, ok := c.Find(list); ok {
			return l
		}
	}
	return c.languages[0]
}

// Find is Match for one list, and reports whether it fits a language.
func (c *Catalogues) Find(list string) (*Language, bool) {
	if list == "" {
		return nil, false
	}
	for _, l := range c.languages {
		if l.Tag == list {
			return l, true
		}
	}
	tags := wished(list)
	if len(tags) == 0 {
		return nil, false
	}
	_, i, sure := c.matcher.Match(tags...)
	return c.languages[i], sure > language.No
}

// wished are the languages of a list, the most wanted first.
func wished(list string) []language.Tag {
	type wish struct {
		tag language.Tag
		q   float64
	}
	var wishes []wish
	for part := range strings.SplitSeq(list, ",") {
		names, weight, weighted := strings.Cut(part, ";")
		q := 1.0
		if weighted {
			var err error
			value, _ := strings.CutPrefix(strings.TrimSpace(weight), "q=")
			if q, err = strconv.ParseFloat(value, 64); err != nil || !(q > 0) {
				continue
			}
		}
		for name := range strings.FieldsSeq(names) {
			tag, err := language.Parse(name[:min(len(name), maxTag)])
			if err == nil && tag != language.Und && len(wishes) < maxWishes {
				wishes = append(wishes, wish{tag, q})
			}
		}
		if len(wishes) == maxWishes {
			break
		}
	}
	slices.SortStableFunc(wishes, func(a, b wish) int { return cmp.Compare(b.q, a.q) })
	var out []language.Tag
	for _, w := range wishes {
		out = append(out, w.tag)
	}
	return out
}
