package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/fieldtext"
	"github.com/mcp-authd/mcp-authd/internal/pages"
)

var inPath = regexp.MustCompile(`{([a-z_]+)}`)

// subjects returns the input fields that identify the object of an operation.
func subjects(verb admin.Verb) (out []string) {
	for _, f := range inPath.FindAllStringSubmatch(verb.Spec().Path, -1) {
		out = append(out, f[1])
	}
	return out
}

// subjectOf returns the object that a query names.
func subjectOf(verb admin.Verb, query url.Values) url.Values {
	out := url.Values{}
	for _, f := range subjects(verb) {
		if query.Get(f) != "" {
			out.Set(f, query.Get(f))
		}
	}
	return out
}

// missing reports whether a query lacks a required field of an operation.
func missing(verb admin.Verb, query url.Values) bool {
	for _, m := range members(reflect.New(verb.Input()).Elem()) {
		if m.given && m.value.Kind() != reflect.Bool && query.Get(m.name) == "" {
			return true
		}
	}
	return false
}

// input returns a pointer to the input of an operation, from the fields of a form.
func input(verb admin.Verb, given url.Values) (reflect.Value, error) {
	in := reflect.New(verb.Input())
	for _, m := range members(in.Elem()) {
		if rowable(m.value.Type()) {
			if err := setRows(m.value, m.name, given); err != nil {
				return in, fmt.Errorf("%s: %w", caption(m.name), err)
			}
		}
		if err := set(m.value, given[m.name]); err != nil {
			return in, fmt.Errorf("%s: %w", caption(m.name), err)
		}
		cleared := given.Has(m.name) || rowable(m.value.Type()) && rowsIn(m.name, given) > 0
		if m.clear && cleared && m.value.IsNil() {
			m.value.Set(reflect.MakeSlice(m.value.Type(), 0, 0))
		}
	}
	return in, nil
}

// set parses a form value into a field. An empty value leaves it unset.
func set(v reflect.Value, given []string) error {
	text := strings.TrimSpace(strings.Join(given, "\n"))
	if text == "" {
		return nil
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch v.Interface().(type) {
	case time.Time:
		at, err := moment(text)
		v.Set(reflect.ValueOf(at))
		return err
	case time.Duration:
		d, err := time.ParseDuration(text)
		v.SetInt(int64(d))
		if err != nil {
			return fmt.Errorf("%q is not a time such as 90m", text)
		}
		return nil
	}
	if err := fieldtext.Set(v, text); !errors.Is(err, fieldtext.ErrKind) {
		return err
	}
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String {
		for _, word := range strings.Fields(text) {
			v.Set(reflect.Append(v, reflect.ValueOf(word).Convert(v.Type().Elem())))
		}
		return nil
	}
	if err := json.Unmarshal([]byte(text), v.Addr().Interface()); err != nil {
		return fmt.Errorf("this is not the JSON that is expected here: %w", err)
	}
	return nil
}

// localMinute is the time format of browsers' form fields.
const localMinute = "2006-01-02T15:04"

// moment parses a time as browsers and users write it, in UTC if no zone is given.
func moment(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, localMinute,
		"2006-01-02T15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2026-11-23T15:02:00Z", text)
}

// optionsOf returns the options of a field of an operation, including the filled-in value. It returns
// nil for a field that takes any text.
func optionsOf(operation, field, filled string) (options []pages.ConsoleOption) {
	for _, c := range choicesOf(operation, field) {
		options = append(options, pages.ConsoleOption{Value: c.value, Text: c.text})
	}
	return withFilled(options, filled)
}

// withFilled adds the filled-in value to options that lack it: an event of another version.
func withFilled(options []pages.ConsoleOption, filled string) []pages.ConsoleOption {
	known := slices.ContainsFunc(options, func(o pages.ConsoleOption) bool { return o.Value == filled })
	if len(options) > 0 && filled != "" && !known {
		options = append(options, pages.ConsoleOption{Value: filled, Text: filled})
	}
	return options
}

// fieldOf returns the form field for an input field of an operation, with the previous value.
func fieldOf(operation string, m member, given url.Values) pages.ConsoleField {
	label := labelOf(operation, m.name)
	f := pages.ConsoleField{
		Name: m.name, Label: label.name, Hint: label.hint, Type: "text",
		Value: strings.Join(given[m.name], "\n"), Required: m.given,
	}
	kind := m.value.Kind()
	if kind == reflect.Pointer {
		kind = m.value.Type().Elem().Kind()
	}
	switch options := optionsOf(operation, m.name, f.Value); {
	case rowable(m.value.Type()):
		f.Type, f.Rows = "rows", rowsOf(operation, m, given)
	case options != nil:
		f.Type, f.Options = "select", options
	case m.value.Type() == reflect.TypeFor[time.Time]():
		f.Type, f.Label = "datetime-local", f.Label+" (UTC)"
		if at, err := moment(f.Value); err == nil {
			f.Value = at.UTC().Format(localMinute)
		}
	case kind == reflect.Bool:
		f.Type, f.Checked = "check", f.Value == "true"
	case m.secret:
		f.Type, f.Value = "password", ""
	case kind == reflect.Slice, kind == reflect.Map, kind == reflect.Struct:
		f.Type = "area"
		if isTable(m.value) || kind != reflect.Slice {
			f.Hint = strings.TrimSpace(f.Hint + " As JSON.")
		}
	}
	return f
}

// filterOf returns the field of a filter, which has no hint.
func filterOf(m member, given url.Values) pages.ConsoleField {
	f := fieldOf("filter", m, given)
	f.Hint = ""
	if m.name == "event" {
		f.Type, f.Options = "select", []pages.ConsoleOption{{Text: "Any event"}}
		for _, event := range admin.AuditEvents() {
			f.Options = append(f.Options, pages.ConsoleOption{Value: event, Text: event})
		}
		f.Options = withFilled(f.Options, f.Value)
	}
	return f
}

// fields returns the form fields of an operation, without its object.
func fields(verb admin.Verb, given url.Values, subject url.Values) (out []pages.ConsoleField) {
	for _, m := range members(reflect.New(verb.Input()).Elem()) {
		if !subject.Has(m.name) {
			out = append(out, fieldOf(verb.Spec().Name, m, given))
		}
	}
	return out
}

// question returns the form for an operation that only reads.
func (v *view) question(verb admin.Verb, query url.Values) pages.ConsoleForm {
	return pages.ConsoleForm{
		Action: v.url(verb.Spec().Name, nil), Button: "Show", Fields: fields(verb, query, nil),
	}
}
