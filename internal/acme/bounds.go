package acme

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/libdns/libdns"
)

const (
	// maxAnswer limits an HTTP response, in bytes. A certificate chain has a few kilobytes.
	maxAnswer = 1 << 20
	// maxWait limits each call to a DNS provider.
	maxWait = time.Minute
)

var errAnswer = fmt.Errorf("the answer has more than %d bytes", maxAnswer)

// sized is a transport that limits bodies to maxAnswer and applies asProblem.
type sized struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s sized) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &sizedBody{ReadCloser: resp.Body, left: maxAnswer}
	if err := asProblem(resp); err != nil {
		return nil, err
	}
	return resp, nil
}

type sizedBody struct {
	io.ReadCloser
	left int
}

func (b *sizedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errAnswer
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		return 0, errAnswer
	}
	return n, err
}

// bound applies sized to an issuer. certmagic reads bodies without a limit and has no option for
// its HTTP client. If an update renames the field, every test panics here.
func bound(i *certmagic.ACMEIssuer) {
	client := (*http.Client)(reflect.ValueOf(i).Elem().FieldByName("httpClient").UnsafePointer())
	client.Transport = sized{client.Transport}
}

// timed is a DNS provider whose calls take at most maxWait, and whose panics become errors.
type timed struct{ certmagic.DNSProvider }

// AppendRecords implements libdns.RecordAppender.
func (t timed) AppendRecords(ctx context.Context, zone string, r []libdns.Record) (out []libdns.Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	defer recovered(&err)
	return t.DNSProvider.AppendRecords(ctx, zone, r)
}

// DeleteRecords implements libdns.RecordDeleter.
func (t timed) DeleteRecords(ctx context.Context, zone string, r []libdns.Record) (out []libdns.Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	defer recovered(&err)
	return t.DNSProvider.DeleteRecords(ctx, zone, r)
}

func recovered(err *error) {
	if recover() != nil {
		*err = errors.New("the client of the provider has a fault")
	}
}
