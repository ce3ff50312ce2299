package admin

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// IsSecret reports whether a field of an input or output holds a secret: `secret:"yes"`. What is marked as
// `secret:"typed"` is not shown as a person fills it in either, but an assistant may be given it.
func IsSecret(f reflect.StructField) bool { return f.Tag.Get("secret") == "yes" }

// TakesSecret reports whether a field of the input of an operation holds a secret.
func TakesSecret(v Verb) bool {
	return slices.ContainsFunc(reflect.VisibleFields(v.Input()), IsSecret)
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// withoutSecrets is the input of an operation, as JSON, without its secrets. Of an operation that this server
// does not have nothing is known.
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
