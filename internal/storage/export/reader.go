package export

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"reflect"
	"strconv"
)

// Reader reads an export. Do not use any of its results before NextTable has returned io.EOF: only
// then is the export known to be complete.
type Reader struct {
	from   *bufio.Reader
	sum    hash.Hash
	header Header
	table  Table
	values reflect.Value // of a row: an array with one element more than the table has columns
	next   []byte        // a line read ahead
	done   Summary
}

// NewReader reads the header of an export. It returns ErrForm if the file does not begin with a
// header, and a wrapped ErrBroken if it is truncated or damaged within it.
func NewReader(from io.Reader) (*Reader, error) {
	zip, err := gzip.NewReader(from)
	if err != nil {
		return nil, fmt.Errorf("%w (%v)", ErrForm, err)
	}
	r := &Reader{from: bufio.NewReaderSize(zip, 1<<16), sum: sha256.New()}
	line, err := r.line()
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(line, &r.header) != nil || r.header.Format != format || r.header.Migration <= 0 {
		return nil, ErrForm
	}
	r.sum.Write(line)
	return r, nil
}

// Header returns the description of the export's source.
func (r *Reader) Header() Header { return r.header }

// NextTable returns the next table, after skipping unread rows of the current one. It returns
// io.EOF once everything was read and the export is complete, a wrapped ErrBroken if it is
// incomplete, and a wrapped ErrForm for an unknown table.
func (r *Reader) NextTable() (Table, error) {
	for {
		line, err := r.peek()
		if err != nil {
			return Table{}, err
		}
		if line[0] == '[' { // an unread row
			if _, err := r.NextRow(); err != nil {
				return Table{}, err
			}
			continue
		}
		break
	}
	line, err := r.take()
	if err != nil {
		return Table{}, err
	}
	var t struct {
		Table
		End *end `json:"end"`
	}
	if err := json.Unmarshal(line, &t); err != nil {
		return Table{}, fmt.Errorf("%w (%v)", ErrBroken, err)
	}
	if t.End != nil {
		return Table{}, r.over(*t.End)
	}
	r.sum.Write(line)
	r.table = t.Table
	r.values = reflect.New(reflect.ArrayOf(len(t.Columns)+1, reflect.TypeFor[json.RawMessage]()))
	r.done.Tables++
	return r.table, r.table.Check()
}

// over compares the data read with the last line, which must end the file.
func (r *Reader) over(e end) error {
	if e.Rows != r.done.Rows || subtle.ConstantTimeCompare(e.SHA256, r.sum.Sum(nil)) != 1 {
		return ErrBroken
	}
	if _, err := r.from.ReadByte(); err != io.EOF {
		return ErrBroken
	}
	return io.EOF
}

// NextRow returns the next row of the table, as string, int64, []byte and nil. It returns io.EOF
// after the last one, and a wrapped ErrBroken if the row does not fit the columns, or the export is
// truncated.
func (r *Reader) NextRow() ([]any, error) {
	line, err := r.peek()
	if err != nil {
		return nil, err
	}
	if line[0] != '[' {
		return nil, io.EOF
	}
	if line, err = r.take(); err != nil {
		return nil, err
	}
	raw, ok := r.split(line)
	if !ok {
		return nil, fmt.Errorf("%w (row %d of %s)", ErrBroken, r.done.Rows+1, r.table.Name)
	}
	row := make([]any, len(raw))
	for i, c := range r.table.Columns {
		if row[i], err = value(raw[i], c.Kind); err != nil {
			return nil, fmt.Errorf("%w (row %d, %s.%s)", ErrBroken, r.done.Rows+1, r.table.Name, c.Name)
		}
	}
	r.sum.Write(line)
	r.done.Rows++
	return row, nil
}

// split splits a row, and reports whether it has one value for each column. It decodes into an
// array and not a slice, to limit the memory for a crafted line with millions of values.
func (r *Reader) split(line []byte) ([]json.RawMessage, bool) {
	r.values.Elem().SetZero()
	if err := json.Unmarshal(line, r.values.Interface()); err != nil {
		return nil, false
	}
	n := len(r.table.Columns)
	all, _ := r.values.Elem().Slice(0, n+1).Interface().([]json.RawMessage)
	return all[:n], all[n] == nil && (n == 0 || all[n-1] != nil)
}

// Summary returns the amount of data read.
func (r *Reader) Summary() Summary { return r.done }

func value(raw json.RawMessage, kind Kind) (any, error) {
	if string(raw) == "null" {
		return nil, nil
	}
	if kind == Integer {
		return strconv.ParseInt(string(raw), 10, 64)
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, err
	}
	if kind == Bytes {
		return base64.StdEncoding.DecodeString(text)
	}
	return text, nil
}

func (r *Reader) peek() (line []byte, err error) {
	if r.next == nil {
		r.next, err = r.line()
	}
	return r.next, err
}

func (r *Reader) take() (line []byte, err error) {
	line, err = r.peek()
	r.next = nil
	return line, err
}

// line reads a line with its end. It returns ErrBroken at the end of the file, because the file may
// only end after the last line, which over has read.
func (r *Reader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.from.ReadSlice('\n')
		line = append(line, part...)
		most := maxHeader
		if len(line) > 0 && line[0] == '[' {
			most = maxLine
		}
		if len(line) > most {
			return nil, fmt.Errorf("%w (a line of more than %d bytes)", ErrBroken, most)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err != nil:
			return nil, fmt.Errorf("%w (%v)", ErrBroken, err) // never io.EOF, which means that the export is complete
		case len(bytes.TrimSpace(line)) == 0:
			return nil, ErrBroken
		}
		return line, nil
	}
}
