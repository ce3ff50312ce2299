package api

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/fieldtext"
)

// readInput reads the input of an operation from path, query and body. It returns a pointer to it.
func readInput(w http.ResponseWriter, r *http.Request, v admin.Verb) (reflect.Value, *problem) {
	in := reflect.New(v.Input())
	spec := v.Spec()
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return in, invalid("the query is malformed")
	}
	fields := fieldsOf(v.Input())
	given := map[string]bool{}
	if spec.HasBody() {
		if len(query) > 0 {
			return in, invalid("this operation takes its input from the path and the body, not from a query")
		}
		var refused *problem
		if given, refused = readBody(w, r, spec, in.Interface()); refused != nil {
			return in, refused
		}
	}
	for name, values := range query {
		f, ok := fields[name]
		if !ok || strings.Contains(spec.Path, "{"+name+"}") {
			return in, invalid("there is no parameter %q", name)
		}
		if err := set(in.Elem().FieldByIndex(f.Index), values); err != nil {
			return in, invalid("%s: %v", name, err)
		}
		given[name] = true
	}
	for _, name := range inPath(spec.Path) {
		if err := set(in.Elem().FieldByIndex(fields[name].Index), []string{r.PathValue(name)}); err != nil {
			return in, invalid("%s: %v", name, err)
		}
		given[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !optional(fields[name]) && !given[name] {
			return in, invalid("%s is required", name)
		}
	}
	return in, nil
}

func invalid(format string, args ...any) *problem {
	return &problem{kind: kindInvalid, detail: fmt.Sprintf(format, args...)}
}

// fieldsOf returns the fields of a struct by JSON name, including those of embedded structs.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	out := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			out[name] = f
		}
	}
	return out
}

// inPath returns the parameters of a path.
func inPath(path string) (out []string) {
	for _, segment := range strings.Split(path, "/") {
		if strings.HasPrefix(segment, "{") {
			out = append(out, strings.TrimSuffix(strings.Trim(segment, "{}"), "..."))
		}
	}
	return out
}

// set parses a field from one text, or from several for a list.
func set(to reflect.Value, texts []string) error {
	if to.Kind() == reflect.Slice && to.Type().Elem().Kind() == reflect.String {
		list := reflect.MakeSlice(to.Type(), len(texts), len(texts))
		for i, text := range texts {
			list.Index(i).SetString(text)
		}
		to.Set(list)
		return nil
	}
	if len(texts) != 1 {
		return errors.New("it is given more than once")
	}
	err := fieldtext.Set(to, texts[0])
	switch form := (*fieldtext.FormError)(nil); {
	case errors.As(err, &form):
		return fmt.Errorf("%q cannot be read", texts[0])
	case errors.Is(err, fieldtext.ErrKind):
		return fmt.Errorf("%s %w", to.Type(), err)
	}
	return err
}
