package lists

import (
	"bytes"
	"errors"
)

const (
	maxEntry = 1 << 20  // bytes of an entry
	maxText  = 16 << 10 // bytes of a key or a name
)

// ErrMalformed means that a response begins as a message but is not JSON, or that JSON decoders
// disagree about it.
var ErrMalformed = errors.New("an answer of the MCP server is not JSON, or ambiguous")

// ErrRefused means that a message announces a hidden task and has been sent in part.
var ErrRefused = errors.New("a task of the MCP server could not be kept")

// place is the filter's position in a message.
type place uint8

const (
	outside place = iota // outside of all messages
	opaque               // text that is not a message, until the event or the body ends
	batch
	message
	result
	list
	entry
	begun // a task
	deep  // anywhere else
)

// isObject reports whether this is an object whose keys have a meaning.
func (p place) isObject() bool {
	return p == message || p == result || p == entry || p == begun
}

// word is the meaning of the last key.
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

// destination is the target of the bytes that are read.
type destination uint8

const (
	toOut destination = iota
	toGap
	toEntry
	toNone
)

// maxPlaces is the depth of an entry in a batch. Anything below has the place deep.
const maxPlaces = 5

// filter parses JSON as it arrives and appends the filtered text to out.
type filter struct {
	shows  View
	framed bool // the text is the data of events
	out    []byte
	dst    destination

	depth  int
	at     place
	places [maxPlaces + 1]place // by depth

	key  bool // a key is expected
	word word
	kind Kind // of the last key that names a list

	foul            bool // not JSON, or ambiguous
	quoted, escaped bool // in a string; after a backslash
	taken           bool // the string has a meaning
	text            []byte

	gap   []byte // text between two entries
	entry []byte
	shown bool // an entry of this list was shown
	inner bool // inside an entry
	lines bool // the entry spans several lines of an event
	name  string
	named bool // the entry has a key for its name
	doubt bool // the name is uncertain

	refused  bool          // a hidden task has begun
	instead  func() []byte // replacement for a message about a hidden task; nil: the response ends
	start    int           // offset in out of the current message; -1 if part of it has been sent
	outside  int           // the depth around the message
	dropping bool          // the rest of the message
	kept     int           // length of out to keep when dropping ends

	buf  []byte
	mark int // offset in buf; the bytes before it were put
}

// read parses the next part of a text.
func (f *filter) read(b []byte) error {
	if bytes.IndexByte(b, 0) >= 0 { // not JSON; some clients then assume another encoding
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
		f.out, f.dst = f.out[:f.kept], toOut // framing may precede the next part
	}
	return nil
}

// replace replaces the current message with an error, if no part of it has been sent.
func (f *filter) replace() bool {
	if f.instead == nil || f.start < 0 {
		return false
	}
	f.out = append(f.out[:f.start], f.instead()...)
	f.refused, f.dropping, f.kept = false, true, len(f.out)
	return true
}

// inDepth skips text at the place deep from index i on. It stops at an incomplete string, at the
// end of a level that matters, or at the end of the buffer. It returns the last index that it has
// read. Only brackets and strings matter there.
func (f *filter) inDepth(i int) int {
	b := f.buf
	for ; i < len(b); i++ {
		class := classes[b[i]]
		if class == passes { // the usual case
			continue
		}
		switch class {
		case opens:
			f.depth++
			if f.depth <= maxPlaces {
				f.places[f.depth] = deep
			}
		case shuts:
			if f.depth > maxPlaces+1 { // the enclosing level is also deep
				f.depth--
				continue
			}
			if _ = f.shut(b[i], i); f.at != deep { // at this depth, bracket types are not matched
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

// whole returns the index of the closing quote of the string that begins at i. It returns 0 if the
// string is incomplete or has a backslash before its next quote. It is a fast path: most strings
// have no escapes.
func whole(b []byte, i int) int {
	n := bytes.IndexByte(b[i+1:], '"')
	if n < 0 || b[i+n] == '\\' { // for "", this is the opening quote
		return 0
	}
	return i + 1 + n
}

// take handles one character outside of strings.
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
		switch isMark := c == 0xef || c == 0xbb || c == 0xbf; { // byte of a byte order mark
		case f.at == outside && !isMark:
			if f.at = opaque; f.framed && hasOdd([]byte{c}) {
				return ErrMalformed
			}
		case f.at != outside && (f.key || classes[c] == fouls): // a key must be a string
			return ErrMalformed
		}
	}
	return nil
}

// open handles the start of an object or an array.
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

// shut handles the end of an object or an array.
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

// begin handles the start of an entry.
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

// flush puts the bytes of buf up to i.
func (f *filter) flush(i int) {
	if f.mark < i {
		f.put(f.buf[f.mark:i])
		f.mark = i
	}
}

// put appends bytes to the current destination.
func (f *filter) put(b []byte) {
	switch f.dst {
	case toOut:
		f.out = append(f.out, b...)
	case toGap:
		if len(f.gap)+len(b) <= maxEntry { // any more white space is dropped
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

// over handles the end of an event or of the body.
func (f *filter) over() error {
	if f.depth > 0 || f.quoted {
		return ErrMalformed
	}
	f.at = outside
	return nil
}
