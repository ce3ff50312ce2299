package zoo

import (
	"encoding/json"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
)

// fixture is a recording of a client's requests. Placeholders are in braces, and everything else is
// literal.
type fixture struct {
	Name                  string            `json:"name"`
	Version               string            `json:"version"`
	Executed              bool              `json:"executed"`
	Confidence            string            `json:"confidence"`
	Evidence              string            `json:"evidence"` // executed, read, issue, hypothesis
	Modes                 []string          `json:"modes"`    // dcr, cimd, preregistered, none
	Registration          json.RawMessage   `json:"dcr_body"`
	Required              []string          `json:"required_response_fields"`
	DocumentURL           string            `json:"cimd_client_id"`
	Document              json.RawMessage   `json:"cimd_document"`
	DocumentConfidence    string            `json:"cimd_document_confidence"`
	DocumentReconstructed bool              `json:"cimd_document_reconstructed"`
	RedirectURI           string            `json:"redirect_uri"` // the one in use
	RedirectMatch         string            `json:"redirect_match"`
	Authorize             map[string]string `json:"authorize_params"`
	Token                 *request          `json:"token_request"`
	Refresh               *request          `json:"refresh_request"`
	Unencoded             bool              `json:"sends_unencoded"`
	ParallelRefresh       bool              `json:"refreshes_in_parallel"`
	VerifierLen           int               `json:"verifier_len"`
	VerifierHex           bool              `json:"verifier_hex"`
}

// request is a form posted to the token endpoint.
type request struct {
	Authorization string            `json:"authorization"`
	Body          map[string]string `json:"body"`
}

// way is one kind of registration of a client. Some clients have two, and both are replayed.
type way struct {
	*fixture
	mode    string // kind of registration, one of Modes
	variant string // difference from the fixture, or ""
	sign    bool   // uses private_key_jwt
	// change edits the form that is posted to the token endpoint.
	change func(form url.Values)
}

func readFixtures(t *testing.T) []fixture {
	t.Helper()
	b, err := os.ReadFile("testdata/clients.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []fixture
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// documentsWithout lists documents that are only partly known. Members that the specification
// requires are added, and the table marks the document.
var documentsWithout = map[string]map[string]any{
	"grok": {"client_name": "Grok"}, // CIMD §4.1 requires a name
}

// ways expands the fixtures, in their order.
func ways(fixtures []fixture) []*way {
	var out []*way
	for i := range fixtures {
		f := &fixtures[i]
		for _, mode := range f.Modes {
			out = append(out, &way{fixture: f, mode: mode})
		}
		switch f.Name {
		case "csharp-sdk":
			// Without a secret it sends an empty one.
			public := *f
			public.Registration = withMembers(f.Registration, map[string]any{"token_endpoint_auth_method": "none"})
			out = append(out, &way{fixture: &public, mode: "dcr", variant: "public client"})
		case "codex-dcr":
			out = append(out, &way{fixture: f, mode: "dcr", variant: "--oauth-resource", change: func(form url.Values) {
				form["resource"] = append(form["resource"], form["resource"]...)
			}})
		case "chatgpt-cimd-stable", "chatgpt-cimd-per-connection":
			// It negotiates. The fixture's requests use "none".
			out = append(out, &way{fixture: f, mode: "cimd", variant: "private_key_jwt", sign: true})
		}
	}
	return out
}

// withMembers returns a JSON object with additional members.
func withMembers(object json.RawMessage, more map[string]any) json.RawMessage {
	var m map[string]any
	if err := json.Unmarshal(object, &m); err != nil {
		panic(err) // a literal of this package
	}
	for k, v := range more {
		m[k] = v
	}
	b, _ := json.Marshal(m) // cannot fail: it was parsed from JSON
	return b
}

// title returns the test name, with the requirements that this client represents.
func (w *way) title() string {
	title := strings.ReplaceAll(w.Name, " / ", " or ") // a slash would make it two tests
	if len(w.Modes) > 1 {
		title += " by " + w.mode
	}
	if w.variant != "" {
		title += " as " + w.variant
	}
	for _, r := range w.requirements() {
		title += " " + r
	}
	return title
}

func (w *way) requirements() (ids []string) {
	add := func(id string, applies bool) {
		if applies && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	registration := string(w.Registration)
	add("AS-134", w.mode == "dcr" && strings.Contains(registration, `"none"`))
	add("AS-88", strings.Contains(registration, "client_secret_post") || w.mode == "preregistered")
	add("AS-89", strings.Contains(registration, "client_secret_basic") || w.Token != nil && w.Token.Authorization != "")
	add("AS-133", w.mode == "dcr" && strings.Contains(registration, "client_secret"))
	add("AS-139", w.mode == "dcr" && strings.Contains(registration, "device_code"))
	add("AS-140",
		w.mode == "dcr" && !strings.Contains(registration, "application_type") &&
			strings.Contains(registration, "http://"))
	add("AS-151", w.mode == "cimd")
	add("AS-157", w.RedirectMatch == "MISMATCH")
	add("AS-159", w.sign)
	add("AS-169", w.mode == "preregistered")
	add("AS-54", w.RedirectMatch == "loopback-any-port")
	add("AS-57", w.RedirectURI != "" && !strings.HasPrefix(w.RedirectURI, "http"))
	add("CL-47", w.Authorize != nil && (w.Authorize["resource"] == "" || w.Authorize["scope"] == ""))
	add("CL-48", w.Authorize["resource"] == "{RESOURCE_SLASH}")
	return ids
}
