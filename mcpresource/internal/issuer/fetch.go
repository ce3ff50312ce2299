// Package issuer is how a resource server speaks with an authorization server: it reads
// metadata and keys, posts to the endpoints at which it is a client, and reads claims in the forms
// that servers send them in. What is trusted of that, the callers decide.
package issuer

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	// FetchTimeout bounds one request that the authorization server answers by itself.
	FetchTimeout = 5 * time.Second
	maxDocument  = 512 << 10 // bytes of a metadata document, a key set or an answer
)

// Client returns c, or if that is nil a client that follows no redirects: metadata and keys live
// where they are said to.
func Client(c *http.Client) *http.Client {
	if c != nil {
		return c
	}
	return newClient(FetchTimeout)
}

func newClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// fetchJSON returns a bounded JSON document.
func fetchJSON(ctx context.Context, c *http.Client, location string) ([]byte, error) {
	resp, body, err := Fetch(ctx, c, location, maxDocument, http.Header{"Accept": {"application/json"}})
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answered %s", location, resp.Status)
	}
	return body, nil
}

// Fetch reads what is at a location, of at most limit bytes. The body of the response
// is closed.
func Fetch(
	ctx context.Context, c *http.Client, location string, limit int64, h http.Header,
) (*http.Response, []byte, error) {
	if err := CheckURL(location); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, FetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header = h
	resp, err := c.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, nil, err
	case int64(len(body)) > limit:
		return nil, nil, fmt.Errorf("%s is larger than %d bytes", location, limit)
	}
	return resp, body, nil
}

// CheckURL admits https anywhere and http on loopback only.
func CheckURL(location string) error {
	u, err := url.Parse(location)
	if err != nil || u.Host == "" ||
		u.Scheme != "https" && !(u.Scheme == "http" && oauth.IsLoopbackHost(u.Hostname())) {
		return fmt.Errorf("%q is not an https URL (http is for localhost only)", location)
	}
	return nil
}
