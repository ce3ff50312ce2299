package auditformat

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/testkit/audittest"
)

var update = flag.Bool("update", false, "write the golden files")

var source = Source{Issuer: "https://auth.example.com", Version: "v1.2.3"}

// entries returns an entry of each class, and some that are hard to encode.
func entries(t *testing.T) (out []Entry) {
	t.Helper()
	alice := map[string]string{
		"user": "usr_1", "user_name": "alice", "remote": "192.0.2.7", "request_id": "K7M2P9QX",
	}
	claude := map[string]string{
		"client_id": "https://claude.ai/oauth/client", "client_name": "Claude", "grant": "grt_1",
		"resource": "https://mcp.example.com/mcp",
	}
	with := func(more ...map[string]string) map[string]string {
		all := map[string]string{}
		for _, m := range more {
			maps.Copy(all, m)
		}
		return all
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.UTC)
	for i, e := range []verify.Entry{
		{Event: audit.LoginSucceeded, Fields: with(alice, map[string]string{"methods": "pwd otp"})},
		{Event: audit.LoginFailed, Fields: map[string]string{"reason": "unknown account", "remote": "2001:db8::7"}},
		{
			Event:  audit.ConsentApproved,
			Fields: with(alice, claude, map[string]string{"scope": "files:read files:write"}),
		},
		{
			Event:  audit.TokenIssued,
			Fields: map[string]string{"client_id": "robot", "grant_type": "client_credentials"},
		},
		{Event: audit.ToolCalled, Fields: with(alice, claude, map[string]string{
			"tool": "delete_file", "outcome": "error", "arguments_digest": "9f86d081", "jti": "tok_1",
		})},
		{Event: audit.UserChanged, Fields: map[string]string{"user": "usr_1", "what": "disabled", "by": "operator"}},
		{Event: audit.GrantPaused, Fields: with(alice, claude)},
		{Event: audit.SigningKeyRotated, Fields: map[string]string{"kid": "k2", "from": "k1"}},
		{Event: audit.GrantsRevoked, Fields: map[string]string{"grants": "1200", "by": "operator"}},
		{Event: audit.ToolCalled, Fields: map[string]string{"tool": "x"}},
		{Event: audit.ProviderUnreachable, Fields: with(alice, map[string]string{"connector": "corp"})},
		{Event: "later.version", Fields: map[string]string{"new": "field"}},
		{Event: "a|b\\c\nd", Fields: map[string]string{
			"reason": "a=b|c\\d\ne\r\nf\rg\x00h\x1b[31m\u2028<&>", "user_name": "=|\\\n", "odd_field": "CEF:0|x|",
		}},
	} {
		e.At = at.Add(time.Duration(i) * time.Second)
		read, err := Read(int64(4711+i), e.Leaf())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, read)
	}
	return out
}

// TestGolden checks the lines of entries against the golden files (OB-06).
func TestGolden(t *testing.T) {
	for _, f := range Formats {
		var got []byte
		for _, e := range entries(t) {
			line := f.Line(source, e)
			if bytes.ContainsAny(line, "\r\n\x00") {
				t.Errorf("%s: a line end or NUL within %q", f, line)
			}
			got = append(append(got, line...), '\n')
		}
		name := filepath.Join("testdata", string(f)+".golden")
		if *update {
			if err := os.WriteFile(name, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: not as in %s; got\n%s", f, name, got)
		}
	}
	if _, err := Parse("xml"); err == nil || !strings.Contains(err.Error(), "json, ocsf, cef") {
		t.Errorf("another format: got %v", err)
	}
	if _, err := Read(7, []byte("{}")); err == nil || !strings.Contains(err.Error(), "entry 7 cannot be read") {
		t.Errorf("a malformed entry: got %v", err)
	}
}

// TestNothingIsLeftOut checks that each field of an entry is in each of its lines (OB-06).
func TestNothingIsLeftOut(t *testing.T) {
	fields := map[string]string{"reason": "X-reason", "outcome": "X-outcome", "scope": "X-scope"}
	for _, name := range audittest.Read(t).Fields {
		fields[name] = "X-" + name + "-X"
	}
	fields["by"] = "operator"
	for event := range meanings {
		e, err := Read(1, verify.Entry{Event: event, Fields: fields}.Leaf())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range Formats {
			line := string(f.Line(source, e))
			for name, value := range fields {
				if !strings.Contains(line, value) {
					t.Errorf("%s of %s does not have %s: %s", f, event, name, line)
				}
			}
		}
	}
}

// TestMeanings checks that exactly the events that the log keeps have an OCSF and CEF description
// (OB-06).
func TestMeanings(t *testing.T) {
	var kept []string
	for event := range audittest.Read(t).Events {
		if auditlog.Keeps(event) {
			kept = append(kept, event)
		}
	}
	slices.Sort(kept)
	if got := slices.Sorted(maps.Keys(meanings)); !slices.Equal(got, kept) {
		t.Errorf("got  %v\nwant %v", got, kept)
	}
	for event, m := range meanings {
		if m.title == "" || classes[m.class] == "" || m.activity != other && activities[m.class][m.activity] == "" {
			t.Errorf("%s: %+v", event, m)
		}
	}
}

// required lists the members that OCSF 1.6 demands of the classes, beyond those of every event.
var required = map[class][]string{
	baseEvent: nil, accountChange: {"user"}, authentication: {"user", "service"}, entities: {"entity"},
	userAccess: {"user", "privileges"}, apiActivity: {"actor", "api", "src_endpoint"},
}

// TestRequired checks that an event has the members that OCSF demands of its class, even if the
// entry is empty (OB-06).
func TestRequired(t *testing.T) {
	for event, m := range meanings {
		e, err := Read(1, verify.Entry{Event: event}.Leaf())
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(OCSF.Line(source, e), &got); err != nil {
			t.Fatal(err)
		}
		for _, name := range append([]string{
			"activity_id", "category_uid", "class_uid", "type_uid", "time", "severity_id", "metadata",
		}, required[m.class]...) {
			if got[name] == nil {
				t.Errorf("%s has no %s: %v", event, name, got)
			}
		}
		if got["type_uid"] != got["class_uid"].(float64)*100+got["activity_id"].(float64) {
			t.Errorf("%s: type_uid is %v", event, got["type_uid"])
		}
	}
}
