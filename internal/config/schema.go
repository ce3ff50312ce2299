package config

import _ "embed" // for the schema

// schema is generated from the types here, their validation and keys.yaml:
// go test ./internal/config -run TestSchema -update
//
//go:embed schema.json
var schema []byte

// Schema returns the JSON schema (draft 7) of the configuration file. It is for editors, and for
// charts that embed it in the schema of their values. It covers keys, types, fixed choices and
// defaults. Rules between keys are checked only by [Config.Validate]. A secret is writeOnly.
func Schema() []byte { return append([]byte(nil), schema...) }
