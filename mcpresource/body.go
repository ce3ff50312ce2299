package mcpresource

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/limits"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/rules"
)

var errMethod = errors.New("a method differs from one of MCP by case or white space alone")

// discardBody drops the body of a request whose method has none.
func discardBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // if bytes remain, the server closes the connection
	}
}

// isPlainText reports whether every server reads the body as the same text. In another charset the
// bytes can be another message: in UTF-7, "+ACI-" is a quote, and servers with body-parser obey the
// header. JSON is UTF-8 (RFC 8259 §8.1). Parameters are checked anywhere after a semicolon, because
// parsers differ about quotes and repeated parameters.
func isPlainText(h http.Header) bool {
	for _, e := range h["Content-Encoding"] {
		if e = strings.TrimSpace(e); e != "" && !strings.EqualFold(e, "identity") {
			return false
		}
	}
	for _, t := range h["Content-Type"] {
		_, parameters, _ := strings.Cut(t, ";")
		for parameter := range strings.SplitSeq(parameters, ";") {
			name, value, _ := strings.Cut(strings.ToLower(parameter), "=")
			if value = strings.Trim(value, " \t\""); strings.Contains(name, "charset") && value != "utf-8" &&
				value != "utf8" {
				return false
			}
		}
	}
	return true
}

// received is the message of a request.
type received struct {
	envelope message.Envelope
	body     []byte
	name     string // the header Mcp-Name as sent, if it was decoded
	listens  bool   // the request opens a lasting stream
	held     int64  // bytes of the body that count
}

// bodies is the step that reads the message of a request.
type bodies struct {
	most   int64   // bytes of one
	memory *Bodies // of all
	load   *load
}

func (b *bodies) check(w http.ResponseWriter, r *http.Request, p *passage) *refusal {
	refused := b.read(w, r, p)
	if refused != nil && p.unknown != nil {
		return b.load.strangers(r, p, p.unknown) // an unknown caller learns nothing about the body
	}
	return refused
}

func (b *bodies) read(w http.ResponseWriter, r *http.Request, p *passage) *refusal {
	if r.Method != http.MethodPost {
		discardBody(r)
		p.listens = r.Method == http.MethodGet
		return repeated(r, p)
	}
	if !isPlainText(r.Header) {
		return &refusal{
			outcome: OutcomeAmbiguous, status: http.StatusUnsupportedMediaType, code: mcp.CodeInvalidRequest,
			text: "The request body has to be UTF-8, without Content-Encoding.",
		}
	}
	body, err := io.ReadAll(counted{http.MaxBytesReader(w, r.Body, b.most), b.memory, p})
	if refused := p.crowded(err); refused != nil {
		return refused
	}
	switch _, tooLarge := errors.AsType[*http.MaxBytesError](err); {
	case tooLarge:
		return &refusal{
			outcome: OutcomeTooLarge, status: http.StatusRequestEntityTooLarge, text: "The request body is too large.",
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &refusal{
			outcome: OutcomeTooSlow, status: http.StatusRequestTimeout, text: "The request body took too long.",
		}
	case err != nil:
		return &refusal{
			outcome: OutcomeAmbiguous, status: http.StatusBadRequest, code: mcp.CodeParse,
			text: "The request body could not be read.",
		}
	}
	p.body = body
	p.envelope, err = message.Parse(body)
	switch {
	case errors.Is(err, message.ErrEmptyBatch):
		return &refusal{
			outcome: OutcomeAmbiguous, status: http.StatusBadRequest, code: mcp.CodeInvalidRequest,
			text: "A batch must have at least one message.", err: rules.Ambiguous(err),
		}
	case err != nil:
		return &refusal{
			outcome: OutcomeAmbiguous, status: http.StatusBadRequest, code: mcp.CodeParse,
			text: "The request body is malformed or ambiguous.", err: rules.Ambiguous(err),
		}
	}
	p.listens = p.envelope.Streams()
	if refused := repeated(r, p); refused != nil {
		return refused
	}
	for _, m := range p.envelope.Messages {
		if mcp.Mistaken(m.Method) {
			return &refusal{
				outcome: OutcomeAmbiguous, status: http.StatusBadRequest, code: mcp.CodeMethodNotFound,
				id: p.envelope.ID, text: "There is no such method: names of methods have one spelling.",
				err: rules.Ambiguous(errMethod),
			}
		}
		if err := rules.CheckURI(rules.OperationOf(m)); err != nil {
			return &refusal{
				outcome: OutcomeAmbiguous, status: http.StatusBadRequest, code: mcp.CodeInvalidParams,
				id: p.envelope.ID, text: "The resource URI is not in its canonical form.", err: err,
			}
		}
	}
	if refused := decodeName(r, p); refused != nil {
		return refused
	}
	return compare(r, p)
}

// counted is a request body whose bytes count once they have arrived. A size that is announced but
// not sent takes no memory.
type counted struct {
	io.Reader
	bodies  *Bodies
	passage *passage
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if err := limits.Take(c.bodies, c.passage.person(), int64(n)); err != nil {
		return 0, err
	}
	c.passage.held += int64(n)
	return n, err
}

// crowded returns the refusal for a body that exceeds a limit of memory, or nil for other errors.
func (p *passage) crowded(err error) *refusal {
	switch {
	case errors.Is(err, limits.ErrShare):
		return p.limited("Too much is being sent at once.", time.Second)
	case errors.Is(err, limits.ErrFull):
		return &refusal{
			outcome: OutcomeCrowded, status: http.StatusServiceUnavailable, text: "The server is busy.",
			retry: time.Second, err: err,
		}
	}
	return nil
}
