package delegation

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestTokenIsNotPrinted(t *testing.T) {
	token := Token{Token: "gho_secret", Type: "Bearer"}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("token", "token", token)
	for how, got := range map[string]string{
		"%v": fmt.Sprintf("%v", token), "%+v": fmt.Sprintf("%+v", token), "%#v": fmt.Sprintf("%#v", &token),
		"slog": log.String(),
	} {
		if strings.Contains(got, "gho_secret") || !strings.Contains(got, "[redacted]") {
			t.Errorf("AS-223: %s shows %s", how, got)
		}
	}
}

// TestStoredNames: a request is stored while its browser is at the provider, and replicas of two
// versions can read it.
func TestStoredNames(t *testing.T) {
	got, err := json.Marshal(Request{Provider: "corp", Purpose: PurposeLink, UserID: "usr_1"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"Provider":"corp","Errand":"link","UserID":"usr_1","LoginHint":"","Fresh":false,"Choose":false,"Scopes":null,"ClientID":"","Payload":null}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for kind, want := range map[Reauthentication]string{"": "false", ReauthProved: "true", ReauthAsked: `"asked"`} {
		b, err := json.Marshal(kind)
		var read Reauthentication
		if err == nil {
			err = json.Unmarshal(b, &read)
		}
		if string(b) != want || read != kind || err != nil {
			t.Errorf("%q is stored as %s and read as %q: %v", kind, b, read, err)
		}
	}
}
