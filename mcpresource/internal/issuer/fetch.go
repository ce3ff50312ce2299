// Package issuer implements a resource server's communication with an authorization server. It
// reads metadata and keys, posts to endpoints where the resource server is a client, and decodes
// claims in the forms that servers send. Its callers decide what to trust.
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
	// FetchTimeout is the timeout of a request that the authorization server answers by itself.
	FetchTimeout = 5 * time.Second
	maxDocument  = 512 << 10 // bytes of a metadata document, a key set or a response
)

// Client returns c, or if that is nil a client that follows no redirects: metadata and keys must be
// at their stated location.
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

// fetchJSON returns a JSON document of limited size.
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

// Fetch reads at most limit bytes from a location. The body of the returned response is closed.
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

// CheckURL returns an error unless location is https, or http on loopback.
func CheckURL(location string) error {
	u, err := url.Parse(location)
	if err != nil || u.Host == "" ||
		u.Scheme != "https" && !(u.Scheme == "http" && oauth.IsLoopbackHost(u.Hostname())) {
		return fmt.Errorf("%q is not an https URL (http is for localhost only)", location)
	}
	return nil
}
