package config

import (
	"reflect"
	"regexp"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// behindOthers lists keys that are validated only if other keys are set.
var behindOthers = map[string]string{
	"tls.acme.dns.provider":       "tls: {acme: {domains: [localhost], dns: {provider: no choice}}}",
	"tls.acme.dns.key_algorithm":  "tls: {acme: {domains: [localhost], dns: {provider: rfc2136, key_algorithm: no choice}}}",
	"mail.smtp.tls":               "mail: {smtp: {address: 'localhost:25', from: a@example.com, tls: no choice}}",
	"resources[].scopes[].access": "resources: [{uri: https://a.example/mcp, scopes: [{name: a, access: no choice}]}]",
	"thirdparty[].type":           "thirdparty: [{id: a, type: no choice, client_id: a, client_secret: b}]",
	"thirdparty[].client_auth": "thirdparty: [{id: a, type: oidc, issuer: https://a.example, client_id: a, " +
		"client_secret: b, client_auth: no choice}]",
	"trust[].kind":         "trust: [{id: a, kind: no choice, issuer: https://a.example}]",
	"audit.sinks[].format": "audit: {sinks: [{id: a, kind: stdout, format: no choice}]}",
	"trust[].preset":       "", // each preset has its own page and parameters
	"trust[].require_jti":  "", // true or false
	"thirdparty[].icon":    "", // the name of a type
}

// TestChoicesAreThoseOfTheCode checks that keys.yaml lists the fixed choices that the code accepts
// (DL-05).
func TestChoicesAreThoseOfTheCode(t *testing.T) {
	taken := choicesOfTheCode(t)
	found := 0
	for _, k := range Reference() {
		want := slices.DeleteFunc(slices.Sorted(slices.Values(taken[k.Path])), func(s string) bool { return s == "" })
		if got := slices.Sorted(slices.Values(k.Values)); !slices.Equal(got, want) {
			t.Errorf("DL-05: keys.yaml says that %s is one of %q, and the code takes %q", k.Path, got, want)
		}
		if len(want) > 0 {
			found++
		}
	}
	if found < 30 {
		t.Errorf("found the choices of %d keys", found)
	}
}

// choicesOfTheCode extracts the choices from the validation errors for an invalid value.
func choicesOfTheCode(t *testing.T) map[string][]string {
	t.Helper()
	c := reflect.New(reflect.TypeFor[Config]()).Elem()
	fillLists(c)
	first := &c.Addr().Interface().(*Config).Resources[0].Upstream
	out := map[string][]string{}
	first.URL = "http://127.0.0.1:3000/mcp" // otherwise its keys are not validated
	probe(c, c, "", "", out)
	first.URL, first.Command = "", []string{"server"}
	probe(c, c, "", "", out)
	for path, text := range behindOthers {
		delete(out, path)
		if text == "" {
			continue
		}
		c := Default(func(string) string { return "" })
		if err := yaml.Unmarshal([]byte(text), c); err != nil {
			t.Fatal(err)
		}
		err := c.Validate()
		if err == nil {
			t.Errorf("DL-05: %s may be anything", path)
			continue
		}
		for _, said := range isNotOneOf.FindAllStringSubmatch(err.Error(), -1) {
			out[path] = choices(said[2])
		}
	}
	return out
}

// fillLists gives each list of groups one item, so that its keys can be tried.
func fillLists(v reflect.Value) {
	for f := range fields(v.Type()) {
		switch at := v.Field(f.index); {
		case at.Kind() == reflect.Struct:
			fillLists(at)
		case listOfGroups(at.Type()):
			at.Set(reflect.MakeSlice(at.Type(), 1, 1))
			fillLists(at.Index(0))
		}
	}
}

// probe sets each text to an invalid value, and collects the choices from the error.
func probe(c, v reflect.Value, path, indexed string, out map[string][]string) {
	for f := range fields(v.Type()) {
		at, here, key := v.Field(f.index), join(path, f.key), join(indexed, f.key)
		switch {
		case at.Kind() == reflect.Struct:
			probe(c, at, here, key, out)
		case listOfGroups(at.Type()):
			probe(c, at.Index(0), here+"[]", key+"[0]", out)
		case at.Kind() == reflect.String:
			before := at.String()
			at.SetString("no choice")
			if err := c.Addr().Interface().(*Config).Validate(); err != nil {
				for _, said := range isNotOneOf.FindAllStringSubmatch(err.Error(), -1) {
					if said[1] == key {
						out[here] = choices(said[2])
					}
				}
			}
			at.SetString(before)
		}
	}
}

var (
	isNotOneOf = regexp.MustCompile(`(?m)^(.*): (?:"no choice" is not one of|"no choice" is none of:|"a": access is not) ([^;\n]*)`)
	inBrackets = regexp.MustCompile(`\s*\([^)]*\)`)
	between    = regexp.MustCompile(`, | or `)
)

// choices returns the choices in an error message.
func choices(list string) []string {
	all := between.Split(inBrackets.ReplaceAllString(list, ""), -1)
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}
