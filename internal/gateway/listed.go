package gateway

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/gateway/lists"
)

// errUnreadable means that the lists in a response could not be looked at.
var errUnreadable = errors.New("the MCP server answers with a list in a form that cannot be checked")

// ofBytes are the headers that say something about the bytes of a body.
var ofBytes = []string{
	"Content-Length", "Etag", "Last-Modified", "Accept-Ranges", "Content-Md5", "Digest", "Content-Digest",
	"Repr-Digest",
}

// filter has the lists of a response show to the caller of the request what that caller may use. A form
// that clients read and this gateway cannot is an error.
func (u *Upstream) filter(r *http.Response, stream bool) error {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return errUnreadable
	}
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") ||
		err != nil && r.Header.Get("Content-Type") != "" {
		return errUnreadable
	}
	for _, name := range ofBytes {
		delete(r.Header, name)
	}
	if !stream {
		r.Header.Set("Cache-Control", "no-store") // it is for this caller
	}
	ctx := r.Request.Context()
	r.ContentLength = -1
	x := exchangeOf(ctx)
	r.Body = &shown{u, r.Request, lists.Body(r.Body, stream, func(k lists.Kind, name string, entry []byte) bool {
		switch {
		case k == lists.Tasks:
			return u.ownsTask(ctx, x, name)
		case k == lists.Begun:
			return !x.begins || u.bindTask(ctx, x, name)
		case u.c.Shows == nil:
			return true
		}
		return u.c.Shows(ctx, k, name, entry)
	}, x.instead())}
	return nil
}

// shown is a body that logs why it ended early.
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
