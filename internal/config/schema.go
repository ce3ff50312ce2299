package config

import _ "embed" // the schema

// schema is made from the types here, their validation and keys.yaml:
// go test ./internal/config -run TestSchema -update
//
//go:embed schema.json
var schema []byte

// Schema returns the JSON schema (draft 7) of the configuration file: for editors, and for charts that
// have it as a part of their values. It knows keys, types, fixed choices and defaults; rules between keys
// are those of [Config.Validate]. A secret is writeOnly.
func Schema() []byte { return append([]byte(nil), schema...) }
