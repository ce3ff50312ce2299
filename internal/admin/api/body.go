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

// readBody reads a JSON object, or nothing, into a struct.
func readBody(w http.ResponseWriter, r *http.Request, s admin.Spec, in any) *problem {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return &problem{kind: kindTooLarge, detail: "A body has at most 1 MiB."}
	case err != nil:
		return invalid("the body could not be read")
	case len(body) == 0:
		return nil
	case !isJSON(r.Header.Get("Content-Type")):
		return &problem{kind: kindMedia, detail: "Send Content-Type: application/json."}
	}
	known := fieldsOf(reflect.TypeOf(in).Elem())
	for _, name := range inPath(s.Path) {
		delete(known, name)
	}
	if refused := unambiguous(body, known); refused != nil {
		return refused
	}
	var misfit *json.UnmarshalTypeError
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields() // also within lists and objects
	switch err := d.Decode(in); {
	case errors.As(err, &misfit):
		return invalid("%s is of another type: see /api/v1%s", misfit.Field, descriptionPath)
	case err != nil:
		return invalid("the body does not fit: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

func isJSON(contentType string) bool {
	kind, parameters, err := mime.ParseMediaType(contentType)
	charset := parameters["charset"]
	return err == nil && kind == "application/json" && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// unambiguous refuses what another reader of JSON might take for another input. The object has no names but
// the known ones.
func unambiguous(body []byte, known map[string]reflect.StructField) *problem {
	switch {
	case !utf8.Valid(body), !json.Valid(body):
		return invalid("the body is not one JSON object in UTF-8")
	case bytes.TrimLeft(body, " \t\r\n")[0] != '{':
		return invalid("the body is not a JSON object")
	}
	check := func(name string) bool {
		_, ok := known[name]
		return ok
	}
	return distinct(json.NewDecoder(bytes.NewReader(body)), check, maxDepth)
}

// distinct reads a value of valid JSON, in no object of which a name may occur twice, be it in another case.
// The names of the outermost object have to pass a check.
func distinct(d *json.Decoder, check func(name string) bool, depth int) *problem {
	token, _ := d.Token() // it is valid, here and below
	opens, ok := token.(json.Delim)
	switch {
	case !ok:
		return nil
	case depth == 0:
		return invalid("the body has more than %d levels", maxDepth)
	}
	seen := map[string]bool{}
	for d.More() {
		if opens == '{' {
			token, _ := d.Token()
			name, _ := token.(string)
			switch folded := strings.ToLower(name); {
			case !check(name):
				return invalid("this operation has no field %q in its body", name)
			case seen[folded]:
				return invalid("the field %q is there twice", name)
			default:
				seen[folded] = true
			}
		}
		if refused := distinct(d, func(string) bool { return true }, depth-1); refused != nil {
			return refused
		}
	}
	_, _ = d.Token() // the end of the object or list
	return nil
}
