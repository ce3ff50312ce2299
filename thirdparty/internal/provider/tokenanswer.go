package provider

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
)

// tokenAnswers adapts responses of token endpoints to x/oauth2, which parses text/plain as a form
// and rejects an expires_in with a fraction.
type tokenAnswers struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper. The inner transport has already read and bounded the
// body.
func (t tokenAnswers) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, failed(err)
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) == nil && members != nil {
		if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/plain" {
			resp.Header.Set("Content-Type", "application/json")
		}
		if whole, ok := wholeSeconds(members["expires_in"]); ok {
			members["expires_in"] = whole
			body, _ = json.Marshal(members) // raw JSON values
		}
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

// wholeSeconds returns a number of seconds without its fraction. ok is false if it has none.
func wholeSeconds(raw json.RawMessage) (whole json.RawMessage, ok bool) {
	f, err := strconv.ParseFloat(string(bytes.Trim(raw, `"`)), 64)
	if err != nil || !(f >= 0 && f < math.MaxInt32) || !bytes.ContainsAny(raw, ".eE") {
		return nil, false
	}
	return strconv.AppendInt(nil, int64(f), 10), true
}
