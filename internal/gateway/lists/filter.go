package lists

import (
	"bytes"
	"errors"
)

const (
	maxEntry = 1 << 20  // bytes of one entry
	maxText  = 16 << 10 // bytes of a key or a name
)

// ErrMalformed means that an answer begins as a message and is not JSON, or that readers of JSON differ about it.
var ErrMalformed = errors.New("an answer of the MCP server is not JSON, or ambiguous")

// ErrRefused means that a task has begun that is not shown, when part of the message that says so has gone on.
var ErrRefused = errors.New("a task of the MCP server could not be kept")

// place is where in a message the filter is.
type place uint8

const (
	outside place = iota // of any message
	opaque               // text that is no message, until the event or the body ends
	batch
	message
	result
	list
	entry
	begun // a task
	deep  // anything else
)

// isObject reports whether the keys of this place count.
func (p place) isObject() bool {
	return p == message || p == result || p == entry || p == begun
}

// word is what the last key means.
type word uint8

const (
	other word = iota
	isResult
	isList
	isScope
	isName
	isTask
	isTaskID
)

// destination is where bytes go.
type destination uint8

const (
	toOut destination = iota
	toGap
	toEntry
	toNone
)

// maxPlaces is the depth of an entry in a batch. What is deeper is deep.
const maxPlaces = 5

// filter reads JSON as it comes, and appends to out what goes on.
type filter struct {
	shows  View
	framed bool // the text is the data of events
	out    []byte
	dst    destination

	depth  int
	at     place
	places [maxPlaces + 1]place // by depth

	key  bool // one is expected
	word word
	kind Kind // of the last key that is one of a list

	foul            bool // JSON does not have this, or readers differ about it
	quoted, escaped bool // in a string, behind a backslash
	taken           bool // it counts
	text            []byte

	gap   []byte // between two entries
	entry []byte
	shown bool // one of this list
	inner bool // in an entry
	lines bool // which goes over several lines of an event
	name  string
	named bool // it has a key for its name
	doubt bool // about its name

	refused  bool          // a task that has begun
	instead  func() []byte // of a message that says so; nil: the answer ends
	start    int           // of the message that is read, in out; -1 when part of it has gone on
	outside  int           // the depth around it
	dropping bool          // the rest of it
	kept     int           // of out, while it is dropped

	buf  []byte
	mark int // of buf, that has been put
}

// read takes a part of a text.
func (f *filter) read(b []byte) error {
	if bytes.IndexByte(b, 0) >= 0 { // in no JSON; some clients take it for another encoding then
		return ErrMalformed
	}
	f.buf, f.mark, f.kept = b, 0, len(f.out)
	for i := 0; i < len(b); i++ {
		if f.foul {
			return ErrMalformed
		}
		if f.refused && !f.replace() {
			break
		}
		if f.quoted {
			i = f.inString(i)
			continue
		}
		if f.at == deep {
			if i = f.inDepth(i); f.foul {
				return ErrMalformed
			}
			continue
		}
		if f.at == opaque {
			if f.framed && hasOdd(b[i:]) {
				return ErrMalformed
			}
			break
		}
		if b[i] == '"' && f.at.isObject() && f.word != isScope {
			if end := whole(b, i); end > 0 {
				if f.counts() {
					f.means(b[i+1 : end])
				}
				i = end
				continue
			}
		}
		if err := f.take(b[i], i); err != nil {
			return err
		}
	}
	if f.foul {
		return ErrMalformed
	}
	f.flush(len(b))
	if f.refused && !f.replace() {
		f.out = f.out[:0]
		return ErrRefused
	}
	if f.dropping {
		f.out, f.dst = f.out[:f.kept], toOut // there may be framing around the next part
	}
	return nil
}

// replace puts an error in place of the message that is read, if nothing of it has gone on.
func (f *filter) replace() bool {
	if f.instead == nil || f.start < 0 {
		return false
	}
	f.out = append(f.out[:f.start], f.instead()...)
	f.refused, f.dropping, f.kept = false, true, len(f.out)
	return true
}

// inDepth goes from i on to where a string begins that is not whole, a level ends that counts, or the
// end, and returns the last index that it has seen to. There, only brackets and strings count.
func (f *filter) inDepth(i int) int {
	b := f.buf
	for ; i < len(b); i++ {
		class := classes[b[i]]
		if class == passes { // as most do
			continue
		}
		switch class {
		case opens:
			f.depth++
			if f.depth <= maxPlaces {
				f.places[f.depth] = deep
			}
		case shuts:
			if f.depth > maxPlaces+1 { // what it is in is deep, too
				f.depth--
				continue
			}
			if _ = f.shut(b[i], i); f.at != deep { // there, any bracket ends any other
				return i
			}
		case quoting:
			if end := whole(b, i); end > 0 {
				i = end
				continue
			}
			f.quote(i)
			if i = f.inString(i + 1); f.quoted {
				return i
			}
		case fouls:
			f.foul = true
			return i
		}
	}
	return i
}

// whole returns where the string ends that begins at i and has no backslash before its last quote; 0 for
// any other. Most do, and what they say does not count where this is asked.
func whole(b []byte, i int) int {
	n := bytes.IndexByte(b[i+1:], '"')
	if n < 0 || b[i+n] == '\\' { // of "" this is the first quote
		return 0
	}
	return i + 1 + n
}

// take is one character outside of strings.
func (f *filter) take(c byte, i int) error {
	switch c {
	case ' ', '\t', '\r', '\n':
		return nil
	}
	if f.at == list && !f.inner && c != ',' && c != ']' {
		f.begin(i)
	}
	switch c {
	case '"':
		f.quote(i)
	case '{', '[':
		f.open(c, i)
	case '}', ']':
		return f.shut(c, i)
	case ',':
		if f.at == list && f.inner {
			f.end(i)
		}
		f.key, f.word = f.at.isObject(), other
	case ':':
		f.key = false
	default:
		switch isMark := c == 0xef || c == 0xbb || c == 0xbf; { // of a byte order mark
		case f.at == outside && !isMark:
			if f.at = opaque; f.framed && hasOdd([]byte{c}) {
				return ErrMalformed
			}
		case f.at != outside && (f.key || classes[c] == fouls): // a key is a string
			return ErrMalformed
		}
	}
	return nil
}

// open begins an object or an array.
func (f *filter) open(c byte, i int) {
	next := deep
	switch object := c == '{'; {
	case (f.at == outside || f.at == batch) && object:
		next = message
	case f.at == outside:
		next = batch
	case f.at == message && f.word == isResult && object:
		next = result
	case f.at == result && f.word == isList && !object:
		next = list
	case f.at == list && object:
		next = entry
	case f.at == result && f.word == isTask && object:
		next = begun
	}
	if next == message {
		f.flush(i)
		f.start, f.outside = len(f.out), f.depth
	}
	if f.depth++; f.depth <= maxPlaces {
		f.places[f.depth] = next
	}
	if f.at = next; next == list {
		f.flush(i + 1)
		f.dst, f.shown = toGap, false
	}
	f.key, f.word = next.isObject(), other
}

// shut ends an object or an array.
func (f *filter) shut(c byte, i int) error {
	if f.depth == 0 || f.at.isObject() && c != '}' || (f.at == list || f.at == batch) && c != ']' {
		return ErrMalformed
	}
	if f.at == list {
		if f.inner {
			f.end(i)
		}
		f.flush(i)
		f.dst, f.out, f.gap = toOut, append(f.out, f.gap...), f.gap[:0]
	}
	f.depth--
	if f.dropping && f.depth == f.outside {
		f.flush(i + 1)
		f.out, f.dst, f.dropping = f.out[:f.kept], toOut, false
	}
	if f.at = deep; f.depth <= maxPlaces {
		f.at = f.places[f.depth]
	}
	if f.at == list {
		f.end(i + 1)
	}
	return nil
}

// begin is the begin of an entry.
func (f *filter) begin(i int) {
	f.flush(i)
	f.dst, f.entry = toEntry, f.entry[:0]
	f.inner, f.lines, f.name, f.named, f.doubt = true, false, "", false, false
}

// end decides about the entry that ends before i.
func (f *filter) end(i int) {
	f.flush(i)
	f.inner = false
	if f.isShown() {
		gap := f.gap
		if comma := bytes.IndexByte(gap, ','); comma >= 0 && !f.shown {
			f.out, gap = append(f.out, gap[:comma]...), gap[comma+1:]
		}
		f.out = append(append(f.out, gap...), f.entry...)
		f.shown = true
	}
	f.dst, f.gap = toGap, f.gap[:0]
}

func (f *filter) isShown() bool {
	if f.doubt || f.name == "" {
		f.shows(f.kind, "", nil)
		return false
	}
	text := f.entry
	if f.lines {
		text = unframed(text)
	}
	return f.shows(f.kind, f.name, text)
}

// flush puts what has been read up to i.
func (f *filter) flush(i int) {
	if f.mark < i {
		f.put(f.buf[f.mark:i])
		f.mark = i
	}
}

// put sends bytes where they go.
func (f *filter) put(b []byte) {
	switch f.dst {
	case toOut:
		f.out = append(f.out, b...)
	case toGap:
		if len(f.gap)+len(b) <= maxEntry { // the rest is white space
			f.gap = append(f.gap, b...)
		}
	case toEntry:
		if len(f.entry)+len(b) > maxEntry {
			f.dst, f.doubt = toNone, true
			return
		}
		f.entry = append(f.entry, b...)
	}
}

// over is the end of an event, or of the body.
func (f *filter) over() error {
	if f.depth > 0 || f.quoted {
		return ErrMalformed
	}
	f.at = outside
	return nil
}
