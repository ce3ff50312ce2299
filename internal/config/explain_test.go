package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHints checks that the hint for an unknown key is right, or only lists the available keys
// (RU-09).
func TestHints(t *testing.T) {
	for text, want := range map[string]string{
		"isuer: x":                        `"isuer" (did you mean "issuer"?)`,
		"data: x":                         `"data" (did you mean "data_dir"?)`,
		"port: 1":                         `"port" (here are: issuer, `,
		"access_ttl: 5m":                  `"access_ttl" here (did you mean tokens.access_ttl?)`,
		"name: x":                         `"name" (here are: `, // in many groups
		"clients: [{grants: [x]}]":        `"grants" (did you mean "grant_types"?)`,
		"clients: [{redirect_url: [x]}]":  `"redirect_url" (did you mean "redirect_uris"?)`,
		"resources: [{url: x}]":           `"url" (did you mean "uri"?)`,
		"tokens: {access_token_ttl: 5m}":  `"access_token_ttl" (here are: `,
		"database: {dsn: x}":              `"dsn" (here are: url, migrate)`,
		"thirdparty: [{userinfo_url: x}]": `"userinfo_url" (did you mean "user_info_url"?)`,
	} {
		if said := errorOf(t, text); !strings.Contains(said, "unknown key "+want) {
			t.Errorf("RU-09: %s: got %s, want %s", text, said, want)
		}
	}
	for variable, want := range map[string]string{
		"ISUER": "; did you mean MCP_AUTHD_ISSUER?", "DATA": "; did you mean MCP_AUTHD_DATA_DIR?", "BIND": "", "DB": "",
		"DATABASE": "", "SECRET": "", "LISTENS": "; did you mean MCP_AUTHD_LISTEN?",
	} {
		l, err := Load(Source{File: os.DevNull, Environ: []string{"MCP_AUTHD_" + variable + "=x"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(l.Warnings, ""); got != "environment variable MCP_AUTHD_"+variable+" is not known"+want {
			t.Errorf("RU-09: %s: got %s, want %s", variable, got, want)
		}
	}
}

// TestErrorsShowNoSecrets checks that an error in the file never shows a line that may contain a
// secret (RU-09).
func TestErrorsShowNoSecrets(t *testing.T) {
	for _, text := range []string{
		"mail:\n  smtp:\n    password: x\n    password: geheim7\n",
		"mail:\n  smtp:\n    password: geheim7\n\tfrom: a\n",
		"mail:\n  smtp:\n    pasword: geheim7\n",
		"mail: {smtp: {password: geheim7, from: a, from: b}}\n",
		"mail: {smtp: geheim7}\n",
		"thirdparty: [{\"id\": a, \"client_secret\":\"geheim7\", \"isuer\":\"x\"}]\n",
		"thirdparty: [{id: a, 'client_secret':'geheim7', isuer: x}]\n",
		"mail:\n  smtp:\n    password: *geheim7\n",
		"mail:\n  smtp:\n    password: [geheim7]\n    pasword: a\n",
		"secret_key: |\n  aaa\n\tgeheim7\n",
		"secret_key: |\n  aaa\n geheim7: b\n",
		"secret_key: {a: geheim7}\n",
		"secret_key_old: geheim7\n",
		"database: postgres://authd:geheim7@db/authd\n",
		"database: [postgres://authd:geheim7@db/authd]\n",
		"databse: {url: 'postgres://authd:geheim7@db/authd'}\n",
		"events: {receivers: [{id: a, bearer_token: geheim7, xyz: 1}]}\n",
		"resources:\n- upstream:\n    headers: [X: geheim7]\n",
		"resources:\n- upstream:\n    headers:\n    - X: geheim7\n",
		"resources:\n- upstream:\n    env: {A: geheim7}\n",
		"resources:\n- upstream:\n    env:\n    - A=geheim7\n   - B\n",
		"resources: [{upstream: {env: [A=geheim7], evn: 1}}]\n",
		"audit: {sinks: [{id: a, url: 'https://a:geheim7@b', urk: 1}]}\n",
		"traces:\n  headers: 'Authorization: geheim7'\n",
		"clients: [{id: a, jwks: '{geheim7}', jwk: 1}]\n",
	} {
		if said := errorOf(t, text); strings.Contains(said, "geheim7") {
			t.Errorf("RU-09: %q: the error shows the secret: %s", text, said)
		}
	}
}

func errorOf(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(Source{File: file})
	if err == nil {
		t.Fatalf("%q is taken", text)
	}
	return err.Error()
}
