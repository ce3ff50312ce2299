package assembly

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/config"
)

// TestConsoleClientDocument checks that the page of a client shows its last metadata document as
// text, the error of later fetches, and the rule that admits it (OB-11). client policy lists all
// rules in order.
func TestConsoleClientDocument(t *testing.T) {
	t.Parallel()
	var text atomic.Value
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text.Load().(string))
	}))
	t.Cleanup(site.Close)
	id := site.URL + "/client.json"
	document := fmt.Sprintf(`{"client_id":%q,"client_name":"Notes <b>","client_uri":"https://a.example/<script>",`+
		`"redirect_uris":["http://127.0.0.1/callback"]}`, id)
	text.Store(document)
	s := consoled(t, func(c *config.Loaded) {
		c.Registration.InsecureLoopbackDocuments = true
		c.Registration.DocumentsAllow = []string{"good.example", "*.fine.example"}
		c.Registration.DocumentsDeny = []string{"bad.example"}
	})
	b := browse(t, s.Handler())
	path := "/admin/client/show?" + url.Values{"id": {id}}.Encode()
	digest := sha256.Sum256([]byte(document))
	p := b.at(path, "alice")
	wantPage(t, p, 200, "/admin/client/show", "Rules for this client", "registration.documents_others",
		"Its metadata document", hex.EncodeToString(digest[:]), "The text of its document",
		"What its publisher says", "a.example/&lt;script&gt;")
	if strings.Contains(p.body, "<script>") || strings.Contains(p.body, "Notes <b>") {
		t.Errorf("OB-11: the document is markup of the page: %s", p.body)
	}
	p = b.get("/admin/client/policy")
	wantPage(t, p, 200, "/admin/client/policy", "bad.example", "registration.documents_deny", "good.example",
		"*.fine.example", "registration.documents_allow", "registration.documents_others")
	if strings.Index(p.body, "bad.example") > strings.Index(p.body, "good.example") {
		t.Error("OB-11: the rules are not in their order of precedence")
	}
	wantPage(t, b.get("/admin/client/list"), 200, "/admin/client/list", `href="/admin/client/policy"`)
	text.Store(`{"client_id":"https://another.example"}`)
	other := site.URL + "/other.json"
	wantPage(t, b.get("/admin/client/show?"+url.Values{"id": {other}}.Encode()), 409, "/admin/client/show", "client_id")
}
