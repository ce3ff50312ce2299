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

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/strictjson"
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
		return nil, &problem{kind: kindTooLarge, detail: "A body must have at most 1 MiB."}
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
	switch err := strictjson.Decode(body, in, strictjson.Limits{Bytes: maxBody}); { // also refuses unknown nested names
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
	err := strictjson.Check(body, strictjson.Limits{Bytes: maxBody, Depth: maxDepth})
	switch duplicate := (*strictjson.DuplicateError)(nil); {
	case errors.As(err, &duplicate):
		return invalid("the field %q is there twice", duplicate.Name)
	case errors.Is(err, strictjson.ErrLarge):
		return invalid("the body has more than %d levels", maxDepth)
	case err != nil:
		return invalid("the body is not one JSON object in UTF-8")
	case bytes.TrimLeft(body, " \t\r\n")[0] != '{':
		return invalid("the body is not a JSON object")
	}
	return fitting(body, func(name string) (reflect.Type, bool) {
		f, ok := known[name]
		return f.Type, ok
	}, "")
}

// fitting checks the members of an object. It permits only known names in exact case, and refuses
// null where the API description does not allow it. of returns the type of a name (nil for any), and
// whether it is known.
func fitting(object []byte, of func(string) (reflect.Type, bool), at string) *problem {
	members, _ := strictjson.Split(object, strictjson.Folded) // was checked before
	for _, m := range members {
		t, ok := of(m.Name)
		if !ok {
			return invalid("this operation has no field %q in its body", at+m.Name)
		}
		if refused := typed(m.Value, t, at+m.Name); refused != nil {
			return refused
		}
	}
	return nil
}

// typed checks a value for a type, or permits any value if t is nil. It leaves values of the wrong
// kind to the decoder.
func typed(value []byte, t reflect.Type, at string) *problem {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == nil || t == rawType || t.Kind() == reflect.Interface:
		return nil
	case string(value) == "null":
		return invalid("%s must not be null: leave it out", at)
	case value[0] == '{':
		return fitting(value, namesIn(t), at+".")
	case value[0] != '[' || t.Kind() != reflect.Slice:
		return nil
	}
	var items []json.RawMessage
	_ = json.Unmarshal(value, &items) // was checked before
	for _, item := range items {
		if refused := typed(item, t.Elem(), at+"[]"); refused != nil {
			return refused
		}
	}
	return nil
}

// namesIn returns the names that an object of a type may have, with the types of their values.
func namesIn(t reflect.Type) func(string) (reflect.Type, bool) {
	switch {
	case t.Kind() == reflect.Struct && len(fieldsOf(t)) > 0:
		known := fieldsOf(t)
		return func(name string) (reflect.Type, bool) {
			f, ok := known[name]
			return f.Type, ok
		}
	case t.Kind() == reflect.Map:
		return func(string) (reflect.Type, bool) { return t.Elem(), true }
	}
	return func(string) (reflect.Type, bool) { return nil, true }
}
