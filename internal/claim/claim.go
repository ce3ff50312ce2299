// Package claim reads claims: what a provider says of a person, as a JSON object in which
// members may be missing or of any type. What is not of the type that was asked for is as
// good as missing.
package claim

import (
	"encoding/json"
	"strconv"
)

// Text returns a claim that is a string, or a number where providers number people.
func Text(claims map[string]any, name string) string {
	switch v := claims[name].(type) {
	case string:
		return v
	case json.Number:
		if _, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return v.String()
		}
	}
	return ""
}

// True reports whether a claim is true, or "true" as Apple and others write it.
func True(claims map[string]any, name string) bool {
	switch v := claims[name].(type) {
	case bool:
		return v
	case string:
		return v == "true"
	}
	return false
}

// List returns a claim that is a list of strings, or one string.
func List(claims map[string]any, name string) []string {
	switch v := claims[name].(type) {
	case string:
		return []string{v}
	case []string:
		return v
	case []any:
		var out []string
		for _, m := range v {
			if s, ok := m.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}
