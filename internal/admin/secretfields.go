package admin

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// IsSecret reports whether a field of an input or output holds a secret: `secret:"yes"`. A field
// with `secret:"typed"` is masked while a user types it, but an assistant may be given it.
func IsSecret(f reflect.StructField) bool { return f.Tag.Get("secret") == "yes" }

// TakesSecret reports whether the input of an operation has a secret field.
func TakesSecret(v Verb) bool {
	return slices.ContainsFunc(reflect.VisibleFields(v.Input()), IsSecret)
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// withoutSecrets returns the input of an operation as JSON, without its secrets. For an unknown
// operation it returns an empty object.
func withoutSecrets(v Verb, input []byte) ([]byte, error) {
	if v == nil {
		return []byte("{}"), nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(input, &members); err != nil {
		return nil, err
	}
	for _, f := range reflect.VisibleFields(v.Input()) {
		if _, ok := members[jsonName(f)]; ok && IsSecret(f) {
			members[jsonName(f)] = json.RawMessage(`"(not shown)"`)
		}
	}
	return json.Marshal(members)
}
