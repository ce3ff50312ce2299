package issuer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// EndpointConfig configures an Endpoint. An empty Location is discovered. The default Client
// follows no redirects.
type EndpointConfig struct {
	Name                   string // for errors
	Issuer, Location       string
	Locate                 func(Metadata) string
	ClientID, ClientSecret string
	Client                 *http.Client
	Timeout                time.Duration // of one request
}

// Endpoint is an endpoint where this resource server is a client. It is safe for concurrent use.
type Endpoint struct {
	c        EndpointConfig
	underway chan struct{} // one slot per running request
	flight   singleflight.Group

	mu       sync.Mutex // guards location
	location string
}

// atOnce is the maximum number of concurrent requests. It protects the authorization server from
// many callers at once.
const atOnce = 64

var errCrowded = errors.New("too many requests are under way")

// NewEndpoint returns an endpoint. It sends no request yet.
func NewEndpoint(c EndpointConfig) (*Endpoint, error) {
	if err := CheckURL(c.Issuer); err != nil {
		return nil, fmt.Errorf("issuer %w", err)
	}
	if c.Location != "" {
		if err := CheckURL(c.Location); err != nil {
			return nil, fmt.Errorf("%s %w", c.Name, err)
		}
	}
	if c.ClientID == "" || c.ClientSecret == "" {
		return nil, fmt.Errorf("the %s needs ClientID and ClientSecret", c.Name)
	}
	if c.Client == nil {
		c.Client = newClient(c.Timeout)
	}
	return &Endpoint{c: c, underway: make(chan struct{}, atOnce), location: c.Location}, nil
}

// Post sends a form and returns the response with any status. An error means that there was no
// response.
func (e *Endpoint) Post(ctx context.Context, form url.Values) (status int, body []byte, err error) {
	select {
	case e.underway <- struct{}{}:
		defer func() { <-e.underway }()
	default:
		return 0, nil, errCrowded
	}
	location, err := e.locate(ctx)
	if err != nil {
		return 0, nil, err
	}
	return e.post(ctx, location, form)
}

// locate returns the location of the endpoint. Concurrent callers share one discovery, so that they
// do not wait in line while the authorization server does not answer.
func (e *Endpoint) locate(ctx context.Context) (string, error) {
	e.mu.Lock()
	known := e.location
	e.mu.Unlock()
	if known != "" {
		return known, nil
	}
	found, err, _ := e.flight.Do("", func() (any, error) { return e.discover(context.WithoutCancel(ctx)) })
	if err != nil {
		return "", err
	}
	return found.(string), nil
}

func (e *Endpoint) discover(ctx context.Context) (string, error) {
	m, err := Discover(ctx, e.c.Client, e.c.Issuer)
	if err != nil {
		return "", err
	}
	found := e.c.Locate(m)
	if found == "" {
		return "", fmt.Errorf("the metadata of %s name no %s", e.c.Issuer, e.c.Name)
	}
	if err := CheckURL(found); err != nil {
		return "", fmt.Errorf("%s: %w", e.c.Name, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.location = found
	return found, nil
}

func (e *Endpoint) post(ctx context.Context, location string, form url.Values) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, e.c.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, location, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, nil, err
	}
	req.SetBasicAuth(url.QueryEscape(e.c.ClientID), url.QueryEscape(e.c.ClientSecret)) // RFC 6749 §2.3.1
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := e.c.Client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err == nil && len(body) > maxDocument {
		err = fmt.Errorf("the %s answered more than %d bytes", e.c.Name, maxDocument)
	}
	return resp.StatusCode, body, err
}
