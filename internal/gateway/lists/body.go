package lists

import (
	"bytes"
	"io"
	"strings"
)

// Body returns an answer, or a stream of events, as a caller is shown it. What one Read gets is
// handed on by it, but for an entry of a list that is not complete, so no event waits for another.
// A message that says that a task has begun which is not shown gives way to instead, an error for the client;
// with a nil instead, or when part of the message has gone on, Read returns [ErrRefused].
func Body(from io.ReadCloser, stream bool, shows View, instead func() []byte) io.ReadCloser {
	return &body{from: from, events: events{filter: filter{shows: shows, instead: instead, framed: stream}}}
}

// Message returns one message as a caller is shown it.
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
	sent int // of out
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
		b.out, b.sent = nil, 0 // the stream may stay open for long
	}
	return n, nil
}

// Close implements io.Closer.
func (b *body) Close() error { return b.from.Close() }

// events takes the data out of server-sent events (WHATWG HTML §9.2.6), and writes their frame again: each line ends
// with a line feed, a field that is not of the standard becomes an empty comment, and so does a comment. Readers of
// streams differ in what ends a line: some know no carriage return alone, and some split at U+2028. One of them must
// not find an event where this one sees none.
type events struct {
	filter
	begun bool   // the byte order mark, if any, is over
	field []byte // the name of the field of the line that is read; cut when it is longer than any that counts
	value value
	cr    bool // the last byte; a line feed after it ends no other line
	alone *alone
}

// value is what of a line is read.
type value uint8

const (
	ofField value = iota // the name of the field
	ofSpace              // the space that may follow its colon
	ofData
	ofOther   // of an event, an id, or the time to wait
	ofNothing // of a comment, or an unknown field
)

// byteOrderMark may begin a stream, and belongs to no line.
const byteOrderMark = "\ufeff"

// longestField is longer than the name of any field, by one byte.
const longestField = len("retry") + 1

// take takes a part of the answer.
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

// alone reads a line of data by itself, as some clients do, where the lines before it are part of another text or
// message. Nil reads nothing.
type alone struct {
	inBatch bool
	begun   bool
	ended   bool // it is not a message
	filter
}

// isMessage takes a part of the line, and reports whether the line begins as a message with a list or a task. It does
// before the list, or the first entry, is complete to the client.
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
		case b[0] == '{' && a.inBatch: // which is a message of the batch, and read as one
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

// endField is the end of the name of a field.
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

// hasOdd reports whether a text that is no message has characters at which a reader could end a line: all but those of
// ASCII that can be printed, and tabs. An id goes back in a header, which has no others.
func hasOdd(b []byte) bool {
	for _, c := range b {
		if c != '\t' && (c < ' ' || c > '~') {
			return true
		}
	}
	return false
}

// endLine takes a line end. An empty line ends the event.
func (e *events) endLine(c byte) error {
	if c == '\n' && e.cr {
		e.cr = false
		return nil
	}
	empty := e.value == ofField && len(e.field) == 0
	if e.value == ofField && !empty {
		e.endField() // of a field without a value
	}
	e.put([]byte("\n"))
	e.cr, e.begun = c == '\r', true
	e.value, e.field, e.lines = ofField, e.field[:0], true
	switch {
	case empty:
		return e.over()
	case e.quoted: // a string ends on its line
		return ErrMalformed
	}
	return nil
}

// unframed is the data of an entry that goes over several lines of an event.
func unframed(entry []byte) []byte {
	out := make([]byte, 0, len(entry))
	for i, line := range bytes.FieldsFunc(entry, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if i > 0 {
			data, ok := bytes.CutPrefix(line, []byte("data:"))
			if !ok {
				continue
			}
			line = append([]byte{'\n'}, data...) // a space more or less between two tokens
		}
		out = append(out, line...)
	}
	return out
}
