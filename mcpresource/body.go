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
}

// bodies is the step that reads the message of a request.
type bodies struct {
	most   int64   // bytes of one
	memory *Bodies // of all
	load   *load
}

func (b *bodies) check(w http.ResponseWriter, r *http.Request, p *passage) *refusal {
	var refused *refusal
	p.received, refused = b.receive(w, r, p)
	if refused != nil && p.unknown != nil {
		return b.load.strangers(r, p, p.unknown) // an unknown caller learns nothing about the body
	}
	return refused
}

// receive reads and checks the message of a request. With a refusal it returns the parts it read.
func (b *bodies) receive(w http.ResponseWriter, r *http.Request, p *passage) (m received, refused *refusal) {
	if r.Method != http.MethodPost {
		discardBody(r)
		m.listens = r.Method == http.MethodGet
		return m, repeated(r, nil)
	}
	if m.body, refused = b.read(w, r, p); refused != nil {
		return m, refused
	}
	if m.envelope, refused = parse(m.body); refused != nil {
		return m, refused
	}
	m.listens = m.envelope.Streams()
	if refused = repeated(r, m.envelope.ID); refused != nil {
		return m, refused
	}
	if refused = misspelled(m.envelope); refused != nil {
		return m, refused
	}
	if m.name, refused = decodeName(r, m.envelope.ID); refused != nil {
		return m, refused
	}
	return m, compare(r, m.envelope)
}

// read reads a body within the limits of size, time and memory.
func (b *bodies) read(w http.ResponseWriter, r *http.Request, p *passage) ([]byte, *refusal) {
	if !isPlainText(r.Header) {
		return nil, &refusal{
			outcome: OutcomeAmbiguous, status: http.StatusUnsupportedMediaType, code: mcp.CodeInvalidRequest,
			text: "The request body has to be UTF-8, without Content-Encoding.",
		}
	}
	body, err := io.ReadAll(counted{http.MaxBytesReader(w, r.Body, b.most), b.memory, p})
	if refused := p.crowded(err); refused != nil {
		return nil, refused
	}
	switch _, tooLarge := errors.AsType[*http.MaxBytesError](err); {
	case tooLarge:
		return nil, &refusal{
			outcome: OutcomeTooLarge, status: http.StatusRequestEntityTooLarge, text: "The request body is too large.",
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &refusal{
			outcome: OutcomeTooSlow, status: http.StatusRequestTimeout, text: "The request body took too long.",
		}
	case err != nil:
		return nil, &refusal{
			outcome: OutcomeAmbiguous, status: http.StatusBadRequest, code: mcp.CodeParse,
			text: "The request body could not be read.",
		}
	}
	return body, nil
}

func parse(body []byte) (message.Envelope, *refusal) {
	e, err := message.Parse(body)
	switch {
	case errors.Is(err, message.ErrEmptyBatch):
		return e, &refusal{
			outcome: OutcomeAmbiguous, status: http.StatusBadRequest, code: mcp.CodeInvalidRequest,
			text: "A batch must have at least one message.", err: rules.Ambiguous(err),
		}
	case err != nil:
		return e, &refusal{
			outcome: OutcomeAmbiguous, status: http.StatusBadRequest, code: mcp.CodeParse,
			text: "The request body is malformed or ambiguous.", err: rules.Ambiguous(err),
		}
	}
	return e, nil
}

// misspelled refuses methods and resource URIs that servers could read in two ways.
func misspelled(e message.Envelope) *refusal {
	for _, m := range e.Messages {
		if mcp.Mistaken(m.Method) {
			return &refusal{
				outcome: OutcomeAmbiguous, status: http.StatusBadRequest, code: mcp.CodeMethodNotFound,
				id: e.ID, text: "There is no such method: names of methods have one spelling.",
				err: rules.Ambiguous(errMethod),
			}
		}
		if err := rules.CheckURI(rules.OperationOf(m)); err != nil {
			return &refusal{
				outcome: OutcomeAmbiguous, status: http.StatusBadRequest, code: mcp.CodeInvalidParams,
				id: e.ID, text: "The resource URI is not in its canonical form.", err: err,
			}
		}
	}
	return nil
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

// release gives the memory of a request's body back.
func (b *bodies) release(p *passage) {
	if p.held > 0 {
		limits.Give(b.memory, p.person(), p.held)
		p.held = 0
	}
}
