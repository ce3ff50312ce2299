package console

import (
	"encoding"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/pages"
)

// A list of structs, such as the scopes of an MCP server, is filled in as rows. The field
// "description" of the first scope is "scopes.0.description". The first field of a struct names the
// row. Empty rows are ignored.

const (
	maxRows   = 100 // of one list
	spareRows = 2   // empty ones, to add items
)

// rowable reports whether t is a list whose items can be filled in field by field.
func rowable(t reflect.Type) bool {
	if t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Struct {
		return false
	}
	for _, m := range members(reflect.New(t.Elem()).Elem()) {
		_, text := m.value.Addr().Interface().(encoding.TextUnmarshaler)
		switch k := m.value.Kind(); {
		case text, k == reflect.String, k == reflect.Bool:
		case k == reflect.Slice && m.value.Type().Elem().Kind() == reflect.String:
		default:
			return false
		}
	}
	return true
}

func rowName(list string, row int, field string) string {
	return list + "." + strconv.Itoa(row) + "." + field
}

// rowsIn returns how many rows of a list were filled in or shown.
func rowsIn(list string, given url.Values) (n int) {
	for name := range given {
		rest, ok := strings.CutPrefix(name, list+".")
		number, _, _ := strings.Cut(rest, ".")
		if i, err := strconv.Atoi(number); ok && err == nil && i >= n && i < maxRows {
			n = i + 1
		}
	}
	return n
}

// setRows parses the rows of a form into a list.
func setRows(v reflect.Value, list string, given url.Values) error {
	for i := range rowsIn(list, given) {
		item := reflect.New(v.Type().Elem()).Elem()
		all := members(item)
		for _, m := range all {
			if err := set(m.value, given[rowName(list, i, m.name)]); err != nil {
				return fmt.Errorf("row %d: %s: %w", i+1, caption(m.name), err)
			}
		}
		switch {
		case item.IsZero():
		case all[0].value.IsZero():
			return fmt.Errorf("row %d has no %s", i+1, all[0].name)
		default:
			v.Set(reflect.Append(v, item))
		}
	}
	if v.Len() > maxRows {
		return errors.New("there are too many rows")
	}
	return nil
}

// giveRows fills the rows of a form from a list.
func giveRows(v reflect.Value, list string, given url.Values) {
	for i := range v.Len() {
		for _, m := range members(v.Index(i)) {
			if m.value.IsZero() {
				continue
			}
			value := scalar(m.value)
			if t, ok := m.value.Interface().(encoding.TextMarshaler); ok {
				text, err := t.MarshalText()
				if err != nil {
					continue
				}
				value = string(text)
			} else if words, ok := m.value.Interface().([]string); ok {
				value = strings.Join(words, " ")
			}
			given.Set(rowName(list, i, m.name), value)
		}
	}
}

// rowsOf returns the rows of a form, with spare ones.
func rowsOf(operation string, m member, given url.Values) (rows []pages.ConsoleRow) {
	filled := rowsIn(m.name, given)
	for i := range min(filled+spareRows, maxRows) {
		row := pages.ConsoleRow{Name: fmt.Sprintf("%s %d", strings.TrimSuffix(caption(m.name), "s"), i+1)}
		for j, f := range members(reflect.New(m.value.Type().Elem()).Elem()) {
			name, inRow := rowName(m.name, i, f.name), m.name+"."+f.name
			field := pages.ConsoleField{
				Name: name, Label: labelOf(operation, inRow).name, Type: "text", Value: strings.Join(given[name], " "),
				Required: j == 0 && i < filled,
			}
			switch options := optionsOf(operation, inRow, field.Value); {
			case options != nil:
				field.Type, field.Options = "select", options
			case f.value.Kind() == reflect.Bool:
				field.Type, field.Checked = "check", field.Value == "true"
			}
			row.Fields = append(row.Fields, field)
		}
		rows = append(rows, row)
	}
	return rows
}
