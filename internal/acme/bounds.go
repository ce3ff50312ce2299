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
	// maxAnswer bounds an answer over http, in bytes: a chain of certificates is a few kilobytes.
	maxAnswer = 1 << 20
	// maxWait bounds what a provider of DNS takes to write a record, or to delete one.
	maxWait = time.Minute
)

var errAnswer = fmt.Errorf("the answer has more than %d bytes", maxAnswer)

// sized is a transport of answers that are not too long, and of failures that are problems.
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

// bound has an issuer refuse answers that are too long: certmagic reads all that the authority sends, and has
// no option for the client that it makes. An update of certmagic that renames the field fails here, in every test.
func bound(i *certmagic.ACMEIssuer) {
	client := (*http.Client)(reflect.ValueOf(i).Elem().FieldByName("httpClient").UnsafePointer())
	client.Transport = sized{client.Transport}
}

// timed is a provider of DNS that has maxWait for each answer, and that may not take the server down.
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
