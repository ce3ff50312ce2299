package acme

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/mholt/acmez/v3/acme"
)

// problemType is the media type of an error (RFC 8555 §6.7).
const problemType = "application/problem+json"

// asProblem makes a problem of the answer of an authority, or of a proxy before it, that has failed and says so in
// another form: acmez reads problems alone, and nothing would be left of the status.
func asProblem(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode < 400 || kind == problemType {
		return nil
	}
	body, err := io.ReadAll(resp.Body) // it is bounded
	resp.Body.Close()
	if err != nil {
		return err
	}
	var p acme.Problem
	if json.Unmarshal(body, &p) != nil || !strings.HasPrefix(p.Type, problems) { // else its type alone is missing
		// RFC 9457 §4.2.1: about:blank says no more than the status.
		p = acme.Problem{Type: "about:blank", Status: resp.StatusCode, Detail: firstLine(body)}
		if body, err = json.Marshal(p); err != nil {
			return err
		}
	}
	resp.Header.Set("Content-Type", problemType)
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// firstLine is that of a text, as the log may show it.
func firstLine(body []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(body[:min(len(body), 2*maxReason)]), []byte("\n"))
	return cleaned(strings.ToValidUTF8(string(line), ""))
}
