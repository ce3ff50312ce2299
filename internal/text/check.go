package text

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// partial checks the texts of a language against the English ones in want.
func partial(l *Language, want map[string]Entry) error {
	texts, err := l.all()
	if err != nil {
		return err
	}
	var wrong []error
	forms := l.forms()
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		e, english := texts[key], want[key]
		if english.Forms == nil {
			wrong = append(wrong, fault(l, key, "is unknown: English has no such text"))
			continue
		}
		if e.Counted != english.Counted {
			wrong = append(wrong, fault(l, key, "has plural forms in one of this language and English alone"))
			continue
		}
		wrong = append(wrong, checkForms(l, key, e, english, forms)...)
	}
	return errors.Join(wrong...)
}

func checkForms(l *Language, key string, e, english Entry, forms map[string]bool) (wrong []error) {
	known := english.Values()
	for form := range e.Forms {
		if e.Counted && !forms[form] {
			wrong = append(wrong, fault(l, key, "has the plural form "+form+", which this language has not"))
		}
		values := Entry{Forms: map[string][]Piece{form: e.Forms[form]}}.Values()
		for _, v := range values {
			if !slices.Contains(known, v) {
				wrong = append(wrong, fault(l, key, "has {"+v+"}, which English has not"))
			}
		}
		for _, v := range known {
			if !slices.Contains(values, v) && (v != Number || form == Other && slices.Contains(mentioned(english), v)) {
				wrong = append(wrong, fault(l, key, "lacks {"+v+"}"))
			}
		}
	}
	if e.Counted {
		for form := range forms {
			if _, ok := e.Forms[form]; !ok {
				wrong = append(wrong, fault(l, key, "lacks the plural form "+form))
			}
		}
	}
	return wrong
}

// mentioned returns the values in the plural form for large numbers.
func mentioned(e Entry) []string {
	return Entry{Forms: map[string][]Piece{Other: e.Forms[Other]}}.Values()
}

func fault(l *Language, key, what string) error {
	page, name, _ := strings.Cut(key, ".")
	return fmt.Errorf("text: %s/%s.json: %s %s", l.Tag, page, name, what)
}
