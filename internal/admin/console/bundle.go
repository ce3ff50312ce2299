package console

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/pages"
)

// bundlePage is the page of an operation that sends a file.
const bundlePage = "attempt bundle"

// bundle sends an attempt in a form that can be published, as JSON or as a page.
func (v *view) bundle() {
	query := v.r.URL.Query()
	in := admin.AttemptReference{Reference: query.Get("reference")}
	b, err := admin.AttemptBundle.Do(v.r.Context(), v.as, in)
	if err != nil {
		v.failed(err)
		return
	}
	name := "attempt-" + b.Reference
	if query.Get("format") != "html" {
		v.sendJSON(name+".json", b)
		return
	}
	var page bytes.Buffer
	if err := b.Page(&page, pages.StyleSheet()); err != nil {
		v.visitors.Fail(v.w, v.r, err)
		return
	}
	v.send(name+".html", "text/html; charset=utf-8", page.Bytes())
}

func (v *view) sendJSON(name string, value any) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		v.visitors.Fail(v.w, v.r, err)
		return
	}
	v.send(name, "application/json", append(text, '\n'))
}

// send sends a file that the browser saves and never displays as a page of this server.
func (v *view) send(name, kind string, body []byte) {
	h := v.w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write(body)
}
