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

// EndpointConfig says what is posted where, and as which client. Location "" is found by
// discovery; Client nil is one that follows no redirects.
type EndpointConfig struct {
	Name                   string // for errors
	Issuer, Location       string
	Locate                 func(Metadata) string
	ClientID, ClientSecret string
	Client                 *http.Client
	Timeout                time.Duration // of one request
}

// Endpoint is one at which this resource server is a client. It is safe for concurrent use.
type Endpoint struct {
	c        EndpointConfig
	underway chan struct{} // one place for each request
	flight   singleflight.Group

	mu       sync.Mutex // guards location
	location string
}

// atOnce bounds the requests under way: a crowd of callers would else take the authorization
// server down through us.
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

// Post sends a form and returns the answer, whatever its status. Every error means that there is
// none.
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

// locate finds the endpoint once. Any number of callers share one discovery: one after the other they
// would wait for each other's as long as the authorization server is silent.
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
