package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// Client runs operations on another server. It is an [admin.Caller].
type Client struct {
	Root string // the URL of its API
	// HTTP adds a token with the scopes of the API to each request.
	HTTP *http.Client
}

// RemoteError is a problem of another server that does not correspond to an error of package admin.
type RemoteError struct{ Problem }

func (e *RemoteError) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("the server answers: %s (%d)", e.Title, e.Status)
	}
	return e.Detail
}

// maxAnswer limits the response of the other server, in bytes.
const maxAnswer = 64 << 20

// Call implements [admin.Caller]. It returns the operation's error if the problem identifies it, or
// a [*RemoteError]. A change has an idempotency key, so it is made once even if it is sent again.
// Call repeats it if the connection breaks, and while the server is still processing it.
func (c *Client) Call(ctx context.Context, v admin.Verb, in, out any) error {
	r, err := c.request(ctx, v.Spec(), reflect.ValueOf(in).Elem())
	if err != nil {
		return err
	}
	answer, body, err := c.send(r)
	if broken(err) {
		answer, body, err = c.sendAgain(r)
	}
	switch {
	case err != nil:
		return err
	case answer.StatusCode == http.StatusAccepted:
		return proposedBy(body)
	case answer.StatusCode != http.StatusOK:
		return problemOf(answer, body)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("the answer of the server cannot be read: %w", err)
	}
	return nil
}

// proposedBy returns the error of an operation that waits for a second administrator.
func proposedBy(body []byte) error {
	proposed := &admin.ProposedError{}
	if err := json.Unmarshal(body, &proposed.Proposal); err != nil {
		return fmt.Errorf("the answer of the server cannot be read: %w", err)
	}
	return proposed
}

// send sends a request, which may have been sent before, and reads the response.
func (c *Client) send(r *http.Request) (*http.Response, []byte, error) {
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		var err error
		if again.Body, err = r.GetBody(); err != nil {
			return nil, nil, err
		}
	}
	answer, err := c.HTTP.Do(again)
	if err != nil {
		return nil, nil, plain(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = errors.New("the answer of the server is too large")
	}
	return answer, body, err
}

// sendAgain repeats a request whose connection broke. It waits while the server is still processing
// the request.
func (c *Client) sendAgain(r *http.Request) (answer *http.Response, body []byte, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), endedAfter)
	defer cancel()
	for {
		if answer, body, err = c.send(r.WithContext(ctx)); err != nil || !running(answer, body) {
			return answer, body, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// plain removes the URL from an error that is clear without it, such as a missing token.
func plain(err error) error {
	var at *url.Error
	var network net.Error
	if errors.As(err, &at) && !errors.As(at.Err, &network) && !broken(err) {
		return at.Err
	}
	return err
}

// broken reports whether a connection ended before the response.
func broken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// running reports whether the server is still processing the same request.
func running(answer *http.Response, body []byte) bool {
	var p Problem
	return answer.StatusCode == http.StatusConflict && json.Unmarshal(body, &p) == nil &&
		p.Type == typePrefix+string(kindRunning)
}

// request encodes an input into path, query and body.
func (c *Client) request(ctx context.Context, s admin.Spec, in reflect.Value) (*http.Request, error) {
	fields, path := fieldsOf(in.Type()), s.Path
	for _, name := range inPath(s.Path) {
		text := fmt.Sprint(in.FieldByIndex(fields[name].Index).Interface())
		if text == "" {
			return nil, fmt.Errorf("%w: %s is empty", admin.ErrInvalid, name)
		}
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(text))
		delete(fields, name)
	}
	var body io.Reader
	query := url.Values{}
	if s.HasBody() {
		given := map[string]any{}
		for name, f := range fields {
			if v := in.FieldByIndex(f.Index); !optional(f) || !v.IsZero() {
				given[name] = notNull(v).Interface()
			}
		}
		text, err := json.Marshal(given)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	} else {
		for name, f := range fields {
			if v := in.FieldByIndex(f.Index); !v.IsZero() {
				query[name] = texts(v)
			}
		}
	}
	r, err := http.NewRequestWithContext(ctx, s.Method, c.Root+path, body)
	if err != nil {
		return nil, err
	}
	r.URL.RawQuery = query.Encode()
	r.Header.Set("Accept", "application/json")
	if s.HasBody() {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.Changes() {
		r.Header.Set("Idempotency-Key", secrets.Token(""))
	}
	return r, nil
}

// notNull returns v, or an empty list or map instead of a nil one, which JSON would encode as null.
func notNull(v reflect.Value) reflect.Value {
	switch {
	case v.Kind() == reflect.Slice && v.IsNil():
		return reflect.MakeSlice(v.Type(), 0, 0)
	case v.Kind() == reflect.Map && v.IsNil():
		return reflect.MakeMap(v.Type())
	}
	return v
}

// texts is the inverse of set.
func texts(v reflect.Value) (out []string) {
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			out = append(out, fmt.Sprint(v.Index(i).Interface()))
		}
		return out
	}
	if m, ok := v.Interface().(interface{ MarshalText() ([]byte, error) }); ok {
		if text, err := m.MarshalText(); err == nil {
			return []string{string(text)}
		}
	}
	return []string{fmt.Sprint(v.Interface())}
}

// problemOf returns the error for an error response.
func problemOf(answer *http.Response, body []byte) error {
	p := Problem{Status: answer.StatusCode, Title: http.StatusText(answer.StatusCode)}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "application/problem+json") {
		_ = json.Unmarshal(body, &p)                                        // missing members keep their default
		p.Title, p.Detail = label.Visible(p.Title), label.Visible(p.Detail) // a line break could forge output
	}
	known := map[kind]error{
		kindForbidden: admin.ErrForbidden, kindNotFound: admin.ErrNotFound,
		kindConflict: admin.ErrConflict, kindInvalid: admin.ErrInvalid,
	}
	if err, ok := known[kind(strings.TrimPrefix(p.Type, typePrefix))]; ok {
		return &remote{err, p.Detail}
	}
	return &RemoteError{p}
}

// remote is an error of package admin with the text of the other server.
type remote struct {
	kind error
	text string
}

func (r *remote) Error() string { return r.text }
func (r *remote) Unwrap() error { return r.kind }
