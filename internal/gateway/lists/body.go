package lists

import (
	"bytes"
	"io"
	"strings"
)

// Body returns a response, or a stream of events, as its caller may see it. Each Read passes on all
// that it gets, except an incomplete list entry, so no event waits for another. A message that
// announces a hidden task is replaced by instead, an error for the client. If instead is nil, or
// part of the message has been sent, Read returns [ErrRefused].
func Body(from io.ReadCloser, stream bool, shows View, instead func() []byte) io.ReadCloser {
	return &body{from: from, events: events{filter: filter{shows: shows, instead: instead, framed: stream}}}
}

// Message returns one message as its caller may see it.
func Message(text []byte, shows View) ([]byte, error) {
	f := filter{shows: shows, out: make([]byte, 0, len(text))}
	if err := f.read(text); err != nil {
		return nil, err
	}
	return f.out, f.over()
}

type body struct {
	from io.ReadCloser
	events
	sent int // bytes of out that were read
	err  error
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	for b.sent == len(b.out) {
		if b.err != nil || len(p) == 0 {
			return 0, b.err
		}
		b.out, b.sent, b.start = b.out[:0], 0, -1
		n, err := b.from.Read(p)
		if b.err = b.events.take(p[:n]); b.err == nil && err != nil {
			if b.err = err; err == io.EOF && b.over() != nil {
				b.err = io.ErrUnexpectedEOF
			}
		}
	}
	n := copy(p, b.out[b.sent:])
	if b.sent += n; b.sent == len(b.out) && cap(b.out) > maxEntry {
		b.out, b.sent = nil, 0 // frees memory, because the stream may stay open for long
	}
	return n, nil
}

// Close implements io.Closer.
func (b *body) Close() error { return b.from.Close() }

// events extracts the data from server-sent events (WHATWG HTML §9.2.6) and rewrites their framing.
// Each line ends with a line feed, and comments and unknown fields become empty comments. Readers
// disagree about line ends: some do not accept a lone carriage return, and some split at U+2028. No
// reader may find an event that this one does not see.
type events struct {
	filter
	begun bool   // any byte order mark has been read
	field []byte // name of the current line's field, cut if it is too long to be a known name
	value value
	cr    bool // the last byte was a carriage return; a line feed now does not end another line
	alone *alone
}

// value is the part of a line that is being read.
type value uint8

const (
	ofField value = iota
	ofSpace       // the optional space after the colon
	ofData
	ofOther   // of the field event, id or retry
	ofNothing // of a comment or an unknown field
)

// byteOrderMark may precede a stream and is not part of its first line.
const byteOrderMark = "\ufeff"

// longestField is one byte longer than the longest field name.
const longestField = len("retry") + 1

// take reads the next part of the response.
func (e *events) take(b []byte) error {
	if !e.framed {
		return e.read(b)
	}
	for len(b) > 0 {
		if c := b[0]; c == '\n' || c == '\r' {
			if err := e.endLine(c); err != nil {
				return err
			}
			b = b[1:]
			continue
		}
		e.cr = false
		line := b[:lineEnd(b)]
		b = b[len(line):]
		if err := e.partOfLine(line); err != nil {
			return err
		}
	}
	return nil
}

func lineEnd(b []byte) int {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		b = b[:i]
	}
	if i := bytes.IndexByte(b, '\r'); i >= 0 {
		return i
	}
	return len(b)
}

func (e *events) partOfLine(b []byte) error {
	for len(b) > 0 {
		switch e.value {
		case ofField:
			if c := b[0]; c == ':' {
				e.endField()
			} else if len(e.field) < longestField {
				e.field = append(e.field, c)
			}
			if !e.begun && string(e.field) == byteOrderMark {
				e.begun, e.field = true, e.field[:0]
			}
			b = b[1:]
		case ofSpace:
			e.value = ofData
			if b[0] == ' ' {
				e.put(b[:1])
				b = b[1:]
			}
		case ofData:
			if e.alone.isMessage(b) {
				return ErrMalformed
			}
			return e.read(b)
		case ofOther:
			if hasOdd(b) {
				return ErrMalformed
			}
			e.put(b)
			return nil
		case ofNothing:
			return nil
		}
	}
	return nil
}

// alone parses a single data line as a separate message, as some clients do, if earlier lines
// belong to another text or message. A nil alone parses nothing.
type alone struct {
	inBatch bool
	begun   bool
	ended   bool // the line is not a message
	filter
}

// isMessage reads a part of the line. It reports whether the line begins as a message with a list
// or a task, before the client has the whole list or its first entry.
func (a *alone) isMessage(b []byte) (found bool) {
	if a == nil || a.ended {
		return false
	}
	for !a.begun {
		b = bytes.TrimLeft(b, " \t")
		switch {
		case len(b) == 0:
			return false
		case strings.IndexByte(byteOrderMark, b[0]) >= 0:
			b = b[1:]
			continue
		case b[0] == '{' && a.inBatch: // it is a message of the batch and is parsed as one
		case b[0] == '{', b[0] == '[':
			a.begun = true
			continue
		}
		a.ended = true
		return false
	}
	a.shows = func(Kind, string, []byte) bool { found = true; return false }
	a.out = a.out[:0]
	err := a.read(b)
	a.ended = err != nil
	return found
}

// endField handles the end of a field name.
func (e *events) endField() {
	switch name := string(e.field); name {
	case "data":
		e.put([]byte("data:"))
		e.value, e.alone = ofSpace, nil
		if e.at != outside {
			e.alone = &alone{inBatch: e.at == batch}
		}
	case "event", "id", "retry":
		e.put([]byte(name + ":"))
		e.value = ofOther
	default:
		e.put([]byte(":"))
		e.value = ofNothing
	}
}

// hasOdd reports whether text outside of messages contains a character that a reader may take for a
// line end. Only printable ASCII and tabs are safe. A client returns an id in a header, which
// allows no others.
func hasOdd(b []byte) bool {
	for _, c := range b {
		if c != '\t' && (c < ' ' || c > '~') {
			return true
		}
	}
	return false
}

// endLine handles a line end. An empty line ends the event.
func (e *events) endLine(c byte) error {
	if c == '\n' && e.cr {
		e.cr = false
		return nil
	}
	empty := e.value == ofField && len(e.field) == 0
	if e.value == ofField && !empty {
		e.endField() // a field without a value
	}
	e.put([]byte("\n"))
	e.cr, e.begun = c == '\r', true
	e.value, e.field, e.lines = ofField, e.field[:0], true
	switch {
	case empty:
		return e.over()
	case e.quoted: // a string must end on its line
		return ErrMalformed
	}
	return nil
}

// unframed returns the data of an entry that spans several lines of an event.
func unframed(entry []byte) []byte {
	out := make([]byte, 0, len(entry))
	for i, line := range bytes.FieldsFunc(entry, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if i > 0 {
			data, ok := bytes.CutPrefix(line, []byte("data:"))
			if !ok {
				continue
			}
			line = append([]byte{'\n'}, data...) // a space between two tokens does not matter
		}
		out = append(out, line...)
	}
	return out
}
