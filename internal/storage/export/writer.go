package export

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"strings"
	"unicode/utf8"
)

// Writer writes an export.
type Writer struct {
	zip   *gzip.Writer
	sum   hash.Hash
	table Table
	done  Summary
}

// NewWriter begins an export.
func NewWriter(to io.Writer, h Header) (*Writer, error) {
	h.Format = format
	w := &Writer{zip: gzip.NewWriter(to), sum: sha256.New()}
	return w, w.line(h)
}

// Table begins a table.
func (w *Writer) Table(t Table) error {
	if err := t.Check(); err != nil {
		return err
	}
	w.table = t
	w.done.Tables++
	return w.line(t)
}

// Row writes a row of the current table. The values are string, []byte, int64, bool or nil. It
// returns a wrapped ErrText with the column if a text cannot be exported.
func (w *Writer) Row(values []any) error {
	if len(values) != len(w.table.Columns) {
		return fmt.Errorf("export: a row of %s does not have a value for each column", w.table.Name)
	}
	row := make([]any, len(values))
	for i, v := range values {
		c := w.table.Columns[i]
		fits := v == nil
		switch v := v.(type) {
		case string:
			if !utf8.ValidString(v) || strings.Contains(v, "\x00") {
				return fmt.Errorf("export: %s.%s: %w", w.table.Name, c.Name, ErrText)
			}
			fits = c.Kind == Text
		case []byte:
			fits = c.Kind == Bytes
			if v == nil {
				values[i] = []byte{} // empty, but not null
			}
		case bool:
			fits = c.Kind == Integer
			values[i] = int64(0)
			if v {
				values[i] = int64(1)
			}
		case int64:
			fits = c.Kind == Integer
		}
		if !fits {
			return fmt.Errorf("export: %s.%s is %s, not %T", w.table.Name, c.Name, c.Kind, v)
		}
		row[i] = values[i]
	}
	w.done.Rows++
	return w.line(row)
}

// Close ends the export and returns its size. Readers refuse an export that was not closed.
func (w *Writer) Close() (Summary, error) {
	if err := w.line(struct {
		End end `json:"end"`
	}{end{w.done.Rows, w.sum.Sum(nil)}}); err != nil {
		return w.done, err
	}
	return w.done, w.zip.Close()
}

func (w *Writer) line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if len(b) > maxLine {
		return fmt.Errorf("export: a row of %s has %d bytes", w.table.Name, len(b))
	}
	w.sum.Write(b)
	_, err = w.zip.Write(b)
	return err
}
