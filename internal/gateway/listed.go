package gateway

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/gateway/lists"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

const eventStream = "text/event-stream"

// errUnreadable means that the lists in a response could not be checked.
var errUnreadable = errors.New("the MCP server answers with a list in a form that cannot be checked")

// ofBytes lists the headers that describe the bytes of a body.
var ofBytes = []string{
	"Content-Length", "Etag", "Last-Modified", "Accept-Ranges", "Content-Md5", "Digest", "Content-Digest",
	"Repr-Digest",
}

// filter removes from the lists of a response every entry that the caller may not use. It returns
// an error for a form that a client can read and this gateway cannot.
func (u *Upstream) filter(r *http.Response, stream bool) error {
	if r.StatusCode == http.StatusPartialContent || r.Header["Content-Range"] != nil {
		return errUnreadable // the preceding part is unknown
	}
	if e := r.Header["Content-Encoding"]; len(e) > 1 || len(e) == 1 && !strings.EqualFold(e[0], "identity") {
		return errUnreadable
	}
	if err := oneType(r.Header); err != nil {
		return err
	}
	for _, name := range ofBytes {
		delete(r.Header, name)
	}
	if !stream {
		r.Header.Set("Cache-Control", "no-store") // the response is for this caller only
	}
	x := exchangeOf(r.Request.Context())
	ctx := mcpresource.NewContext(r.Request.Context(), x.principal) // built once, because each entry needs it
	r.ContentLength = -1
	r.Body = &shown{u, r.Request, lists.Body(r.Body, stream, func(k lists.Kind, name string, entry []byte) bool {
		switch {
		case k == lists.Tasks:
			return u.ownsTask(ctx, x, name)
		case k == lists.Begun:
			return !x.begins || u.bindTask(r.Request, x, name)
		case u.c.Shows == nil:
			return true
		}
		return u.c.Shows(ctx, k, name, entry)
	}, x.instead())}
	return nil
}

// oneType reduces the Content-Type of a response to one media type in one form. Clients disagree
// about how two types are read, and about event streams: some search for the name anywhere in the
// header.
func oneType(h http.Header) error {
	types := h["Content-Type"]
	if len(types) == 0 || len(types) == 1 && types[0] == "" {
		return nil
	}
	base, params, err := mime.ParseMediaType(types[0])
	charset := params["charset"]
	if err != nil || len(types) > 1 || charset != "" && !strings.EqualFold(charset, "utf-8") ||
		base != eventStream && strings.Contains(base, "event-stream") {
		return errUnreadable
	}
	if len(params) > 0 {
		params = nil
		if charset != "" {
			params = map[string]string{"charset": "utf-8"}
		}
		types[0] = mime.FormatMediaType(base, params)
		return nil
	}
	types[0] = base
	return nil
}

// shown is a response body that logs the reason if it ends early.
type shown struct {
	u *Upstream
	r *http.Request
	io.ReadCloser
}

// Read implements io.Reader.
func (s *shown) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if errors.Is(err, lists.ErrMalformed) || errors.Is(err, lists.ErrRefused) {
		s.u.c.Logger.WarnContext(s.r.Context(), "upstream failed", "resource", s.u.c.Resource,
			"upstream", s.u.target.Redacted(), "error", err)
	}
	return n, err
}
