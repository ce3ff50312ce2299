package text

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"
)

const (
	maxWishes = 16 // maximum number of languages per list
	maxTag    = 64 // maximum bytes of a tag
)

// Match returns the best language for the given preferences, the first before the second. Each is a
// list in the format of Accept-Language (RFC 9110 §12.5.4) or ui_locales (OpenID Connect Core
// §3.1.2.1), or "". Lists without a known language are skipped. The default is English.
func (c *Catalogues) Match(wishes ...string) *Language {
	for _, list := range wishes {
		if l, ok := c.Find(list); ok {
			return l
		}
	}
	return c.languages[0]
}

// Find is Match for one list, and reports whether a language matches.
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

// wished returns the languages of a list, in order of preference.
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
