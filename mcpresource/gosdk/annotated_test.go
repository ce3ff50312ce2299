package gosdk

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAnnotatedSecrets: RS-157 an annotation that copies a secret into a header is logged.
func TestAnnotatedSecrets(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))},
		raw("login", `{"type":"object","properties":{
			"region":{"type":"string","x-mcp-header":"Region"},
			"api_key":{"type":"string","x-mcp-header":"Key"},
			"inner":{"type":"object","properties":{"code":{"type":"string","format":"password","x-mcp-header":"Code"}}},
			"password":{"type":"string"}}}`, okTool))
	for range 2 {
		if got := r.modern(t, "alice-mcp", "tools/list", "", ""); got.code != 0 {
			t.Fatal(got.text)
		}
	}
	got := log.String()
	for _, name := range []string{"parameter=api_key", "parameter=code"} {
		if strings.Count(got, name) != 1 {
			t.Errorf("RS-157 %s: got %s", name, got)
		}
	}
	for _, name := range []string{"parameter=region", "parameter=password"} {
		if strings.Contains(got, name) {
			t.Errorf("RS-157 %s: got %s", name, got)
		}
	}
}

// TestMisplacedAnnotations: RS-156 annotations that the SDK should reject are logged.
func TestMisplacedAnnotations(t *testing.T) {
	const header = `{"type":"string","x-mcp-header":"N"}`
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"n":` + header + `}}`:                                             false,
		`{"type":"object","properties":{"o":{"type":"object","properties":{"n":` + header + `}}}}`:        false,
		`{"type":"object","properties":{"x-mcp-header":{"type":"string"},"properties":` + header + `}}`:   false,
		`{"type":"object","properties":{"l":{"type":"array","items":` + header + `}}}`:                    true,
		`{"type":"object","anyOf":[{"properties":{"n":` + header + `}}]}`:                                 true,
		`{"type":"object","$defs":{"n":` + header + `},"properties":{"n":{"$ref":"#/$defs/n"}}}`:          true,
		`{"type":"object","additionalProperties":` + header + `}`:                                         true,
		`{"type":"object","properties":{"o":{"type":"object","if":{"properties":{"n":` + header + `}}}}}`: true,
		`{"type":"object","properties":{"o":{"type":"object","default":` + header + `}}}`:                 false,
		`{"type":"object","anyOf":[{"properties":{"default":` + header + `}}]}`:                           true,
	} {
		t.Run("RS-156 "+schema, func(t *testing.T) {
			var log bytes.Buffer
			r := newRig(t, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, raw("x", schema, okTool))
			for range 2 { // the second list uses the cached check
				list := r.modern(t, "alice-mcp", "tools/list", "", "").text
				if got := !strings.Contains(list, `"x-mcp-header":"N"`); got != want {
					t.Errorf("the annotation is left out: got %t, want %t: %s", got, want, list)
				}
			}
			if got := strings.Count(log.String(), "where clients cannot follow it") == 1; got != want {
				t.Errorf("got %t, want %t: %s", got, want, log.String())
			}
		})
	}
}

// TestAnnotationsThatStay: valid annotations and everything else are unchanged.
func TestAnnotationsThatStay(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},` +
		`"l":{"type":"array","items":{"type":"string","x-mcp-header":"L"}},` +
		`"n":{"type":"integer","maximum":9223372036854775807}}}`
	r := newRig(t, nil, raw("x", schema, okTool))
	list := r.modern(t, "alice-mcp", "tools/list", "", "").text
	if !strings.Contains(list, `"x-mcp-header":"A"`) || strings.Contains(list, `"x-mcp-header":"L"`) ||
		!strings.Contains(list, `9223372036854775807`) {
		t.Errorf("RS-156 got %s", list)
	}
	other := json.RawMessage(strings.Replace(schema, `"A"`, `"B"`, 1))
	r.adapter.server.AddTool(&mcp.Tool{Name: "x", InputSchema: other}, okTool)
	if list := r.modern(t, "alice-mcp", "tools/list", "", "").text; !strings.Contains(list, `"x-mcp-header":"B"`) ||
		strings.Contains(list, `"x-mcp-header":"L"`) {
		t.Errorf("RS-156 a tool that was replaced: got %s", list)
	}
}

func TestSecretNames(t *testing.T) {
	var found []string
	names := []string{
		"password", "client_secret", "accessToken", "token", "session-token", "privateKey", "ssn", "pin",
		"tokens", "max_tokens", "spinner", "tenant", "region", "keyword", "compass", "tokenizer",
	}
	for _, name := range names {
		if secretive.MatchString(name) {
			found = append(found, name)
		}
	}
	if want := names[:8]; !slices.Equal(found, want) {
		t.Errorf("RS-157: got %v, want %v", found, want)
	}
}
