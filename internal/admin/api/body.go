package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

const (
	maxBody  = 1 << 20 // of the body of a request, in bytes
	maxDepth = 100     // of objects and lists in it
)

// readBody decodes a JSON object, or an empty body, into a struct. It returns the names of the
// members.
func readBody(
	w http.ResponseWriter, r *http.Request, s admin.Spec, in any,
) (given map[string]bool, refused *problem) {
	given = map[string]bool{}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &problem{kind: kindTooLarge, detail: "A body has at most 1 MiB."}
	case err != nil:
		return nil, invalid("the body could not be read")
	case len(body) == 0:
		return given, nil
	case !isJSON(r.Header.Get("Content-Type")):
		return nil, &problem{kind: kindMedia, detail: "Send Content-Type: application/json."}
	}
	known := fieldsOf(reflect.TypeOf(in).Elem())
	for _, name := range inPath(s.Path) {
		delete(known, name)
	}
	if refused := unambiguous(body, known); refused != nil {
		return nil, refused
	}
	var misfit *json.UnmarshalTypeError
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields() // also in nested lists and objects
	switch err := d.Decode(in); {
	case errors.As(err, &misfit):
		return nil, invalid("%s is of another type: see /api/v1%s", misfit.Field, descriptionPath)
	case err != nil:
		return nil, invalid("the body does not fit: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, invalid("the body does not fit")
	}
	for name := range members {
		given[name] = true
	}
	return given, nil
}

func isJSON(contentType string) bool {
	kind, parameters, err := mime.ParseMediaType(contentType)
	charset := parameters["charset"]
	return err == nil && kind == "application/json" && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// unambiguous refuses a body that another JSON parser could read differently.
func unambiguous(body []byte, known map[string]reflect.StructField) *problem {
	switch {
	case !utf8.Valid(body), !json.Valid(body):
		return invalid("the body is not one JSON object in UTF-8")
	case bytes.TrimLeft(body, " \t\r\n")[0] != '{':
		return invalid("the body is not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	return fitting(d, known, "", maxDepth)
}

// fitting reads an object of valid JSON. It permits only the known names, each once and in exact
// case. It refuses null where the API description does not allow it.
func fitting(d *json.Decoder, known map[string]reflect.StructField, at string, depth int) *problem {
	if depth == 0 {
		return tooDeep()
	}
	_, _ = d.Token() // valid JSON, here and below
	return membersOf(d, func(name string) (reflect.Type, bool) {
		f, ok := known[name]
		return f.Type, ok
	}, at, depth)
}

// membersOf reads the members of an object. of returns the type of a name (nil for any), and
// whether it is known.
func membersOf(d *json.Decoder, of func(string) (reflect.Type, bool), at string, depth int) *problem {
	seen := map[string]bool{}
	for d.More() {
		token, _ := d.Token()
		name, _ := token.(string)
		t, ok := of(name)
		switch folded := fold(name); {
		case !ok:
			return invalid("this operation has no field %q in its body", at+name)
		case seen[folded]:
			return invalid("the field %q is there twice", at+name)
		default:
			seen[folded] = true
		}
		if refused := distinct(d, t, at+name, depth-1); refused != nil {
			return refused
		}
	}
	_, _ = d.Token() // the end of the object
	return nil
}

// fold maps all names that a case-insensitive parser treats as equal to one text. Folding through
// upper case covers U+017F and U+212A, which encoding/json reads as "s" and "k".
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// distinct reads a value of valid JSON for a type, or for any type if t is nil. It leaves values of
// the wrong kind to the decoder.
func distinct(d *json.Decoder, t reflect.Type, at string, depth int) *problem {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == rawType || t != nil && t.Kind() == reflect.Interface {
		t = nil
	}
	token, _ := d.Token()
	opens, ok := token.(json.Delim)
	switch {
	case token == nil && t != nil:
		return invalid("%s must not be null: leave it out", at)
	case !ok:
		return nil
	case depth == 0:
		return tooDeep()
	case opens == '{':
		return membersOf(d, namesIn(t), at+".", depth)
	}
	var item reflect.Type
	if t != nil && t.Kind() == reflect.Slice {
		item = t.Elem()
	}
	for d.More() {
		if refused := distinct(d, item, at+"[]", depth-1); refused != nil {
			return refused
		}
	}
	_, _ = d.Token() // the end of the list
	return nil
}

// namesIn returns the names that an object of a type may have, with the types of their values.
func namesIn(t reflect.Type) func(string) (reflect.Type, bool) {
	switch {
	case t != nil && t.Kind() == reflect.Struct && len(fieldsOf(t)) > 0:
		known := fieldsOf(t)
		return func(name string) (reflect.Type, bool) {
			f, ok := known[name]
			return f.Type, ok
		}
	case t != nil && t.Kind() == reflect.Map:
		return func(string) (reflect.Type, bool) { return t.Elem(), true }
	}
	return func(string) (reflect.Type, bool) { return nil, true }
}

func tooDeep() *problem { return invalid("the body has more than %d levels", maxDepth) }
