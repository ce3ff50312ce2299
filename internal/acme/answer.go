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

// asProblem turns a failed response of another media type, such as a proxy's, into a problem
// document. acmez reads only these, and would drop the status.
func asProblem(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode < 400 || kind == problemType {
		return nil
	}
	body, err := io.ReadAll(resp.Body) // sized limits the body
	resp.Body.Close()
	if err != nil {
		return err
	}
	var p acme.Problem
	// An ACME problem with a wrong media type keeps its body.
	if json.Unmarshal(body, &p) != nil || !strings.HasPrefix(p.Type, problems) {
		// RFC 9457 §4.2.1: about:blank adds nothing to the status.
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

// firstLine returns the first line of body, cleaned for the log.
func firstLine(body []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(body[:min(len(body), 2*maxReason)]), []byte("\n"))
	return cleaned(strings.ToValidUTF8(string(line), ""))
}
