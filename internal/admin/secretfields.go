package admin

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// secretFields are the fields of inputs that hold a secret.
var secretFields = []string{"password", "secret", "token"}

// TakesSecret reports whether a field of the input of an operation holds a secret.
func TakesSecret(v Verb) bool {
	return slices.ContainsFunc(reflect.VisibleFields(v.Input()), func(f reflect.StructField) bool {
		return slices.Contains(secretFields, jsonName(f))
	})
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// withoutSecrets is a JSON object without the values of secretFields.
func withoutSecrets(object []byte) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	for _, name := range secretFields {
		if _, ok := members[name]; ok {
			members[name] = json.RawMessage(`"(not shown)"`)
		}
	}
	return json.Marshal(members)
}
