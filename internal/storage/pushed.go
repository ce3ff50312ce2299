package storage

import (
	"context"
	"time"
)

// PushedRequests stores pushed authorization requests (RFC 9126).
type PushedRequests interface {
	// PutPushedRequest stores a request. It returns ErrExists if its reference is taken.
	PutPushedRequest(ctx context.Context, r PushedRequest) error
	// OpenPushedRequest returns the sealed parameters to the first browser that opens the request,
	// and to the same browser again until the request expires. One of N concurrent browsers gets
	// them. It returns ErrSpent for any other browser, and ErrNotFound if the request is unknown or
	// expired. It returns ErrMismatch, and changes nothing, for another client's request.
	OpenPushedRequest(ctx context.Context, o OpenPushed) (sealed []byte, err error)
}

// PushedRequest is an authorization request that waits for a browser.
type PushedRequest struct {
	Reference Hash // of the request_uri
	ClientID  string
	Sealed    []byte // its parameters
	ExpiresAt time.Time
}

// OpenPushed identifies a pushed request and the browser that opens it.
type OpenPushed struct {
	Reference Hash // of the request_uri
	ClientID  string
	Browser   Hash // of the browser's id
	Now       time.Time
}
