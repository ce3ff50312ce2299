package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/request"
)

// TestRecord: an event contains the attributes of its request. Each name occurs once, the event's
// own attributes win, and long text is cut.
func TestRecord(t *testing.T) {
	var log bytes.Buffer
	var counted []string
	r := audit.New(slog.New(slog.NewJSONHandler(&log, nil)), func(event string, attrs []slog.Attr) {
		for _, a := range attrs {
			counted = append(counted, a.Key)
		}
	})
	ctx := request.Without(slog.String("request_id", "r1"), audit.Remote("192.0.2.7:1234")).Within(context.Background())
	request.Of(ctx).Note(audit.Person("usr_1", "alice"), slog.String("client_id", "first"))
	request.Of(ctx).Note(slog.String("client_id", "second"), slog.String("resource", strings.Repeat("é", 4000)))
	r.Record(ctx, audit.UserChanged, audit.Person("usr_2", "bob"), slog.String("what", ""), slog.Attr{})
	var got map[string]string
	if err := json.Unmarshal(log.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	resource := got["resource"]
	delete(got, "resource")
	delete(got, "time")
	want := map[string]string{
		"level": "INFO", "msg": "user.changed", "event": "user.changed", "user": "usr_2", "user_name": "bob",
		"request_id": "r1", "remote": "192.0.2.7", "client_id": "second",
	}
	if g, w := must(json.Marshal(got)), must(json.Marshal(want)); g != w {
		t.Errorf("got  %s\nwant %s", g, w)
	}
	if slices.Contains(counted, "") {
		t.Errorf("the audit log would have a field without a name: %q", counted)
	}
	if len(resource) < 500 || len(resource) > 610 || !strings.HasSuffix(resource, "é...") {
		t.Errorf("a text of 8000 bytes became %d: ...%q", len(resource), resource[max(len(resource)-9, 0):])
	}
	for _, k := range []string{"user", "client_id", "request_id"} {
		if strings.Count(log.String(), `"`+k+`":`) != 1 {
			t.Errorf("%s is there more or less than once: %s", k, log.String())
		}
	}
	if !strings.Contains(strings.Join(counted, " "), "user user_name request_id") {
		t.Errorf("counters saw %v", counted)
	}
}

func must(b []byte, err error) string {
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestRenamed: issue 13, 2.1. For one minor version, a line contains both names of a renamed event
// or field, and older logs are readable.
func TestRenamed(t *testing.T) {
	var log bytes.Buffer
	r := audit.New(slog.New(slog.NewJSONHandler(&log, nil)))
	r.Record(t.Context(), audit.ProviderEnded, audit.ProviderSession("ups_1"), audit.Purpose("link"))
	var got map[string]string
	if err := json.Unmarshal(log.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "time")
	want := map[string]string{
		"level": "INFO", "msg": "provider.ended", "event": "provider.ended", "formerly": "upstream.ended",
		"provider_session": "ups_1", "upstream": "ups_1", "purpose": "link", "errand": "link",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for name, event := range map[string]string{
		"upstream.ended": audit.ProviderEnded, "provider.ended": audit.ProviderEnded, "token.issued": audit.TokenIssued,
	} {
		if got := audit.Current(name); got != event {
			t.Errorf("%s is now %q, want %q", name, got, event)
		}
	}
}
