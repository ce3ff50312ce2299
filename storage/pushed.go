package storage

import (
	"context"
	"time"
)

// PushedRequests holds authorization requests that clients have pushed (RFC 9126).
type PushedRequests interface {
	// PutPushedRequest stores a request. ErrExists when its reference is taken.
	PutPushedRequest(ctx context.Context, r PushedRequest) error
	// OpenPushedRequest returns the parameters of a request to the first browser that opens it, and to
	// the same browser again until the request expires: of N concurrent browsers one gets them.
	// ErrSpent for any other browser; ErrMismatch for another client's request, which is left as it
	// is; ErrNotFound when the request has expired or is not known.
	OpenPushedRequest(ctx context.Context, o OpenPushed) (sealed []byte, err error)
}

// PushedRequest is an authorization request that waits for a browser.
type PushedRequest struct {
	Reference Hash // of the request_uri
	ClientID  string
	Sealed    []byte // its parameters
	ExpiresAt time.Time
}

// OpenPushed names a pushed request, and the browser that brings it.
type OpenPushed struct {
	Reference Hash // of the request_uri
	ClientID  string
	Browser   Hash // of the browser's id
	Now       time.Time
}
