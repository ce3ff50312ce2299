package admin

import (
	"reflect"
	"strings"
	"unicode/utf8"
)

// checkTexts refuses text that a database cannot store: invalid UTF-8 and zero bytes. name is the
// field that holds the value.
func checkTexts(name string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		if text := v.String(); !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			return fault(ErrInvalid, "%s has bytes that no text has", name)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return checkTexts(name, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := checkTexts(name, v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(v.Type()) {
			if !f.IsExported() || f.Anonymous {
				continue
			}
			if err := checkTexts(jsonName(f), v.FieldByIndex(f.Index)); err != nil {
				return err
			}
		}
	}
	return nil
}
