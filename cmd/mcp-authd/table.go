package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

// table prints aligned columns. On a terminal, it truncates the widest columns to fit, and ends
// them with admin.CutMark. Elsewhere it truncates nothing.
type table struct {
	w     io.Writer
	width int // of the terminal; 0 for none
	rows  [][]string
}

func newTable(w io.Writer, columns ...string) *table {
	t := &table{w: w, width: terminalWidth(w)}
	t.row(columns...)
	return t
}

func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// row adds one line. It removes control characters, which a client may have put into its name.
func (t *table) row(cells ...string) {
	line := make([]string, len(cells))
	for i, c := range cells {
		line[i] = label.Printable(c)
	}
	t.rows = append(t.rows, line)
}

func (t *table) flush() error {
	widths := t.widths()
	for _, line := range t.rows {
		var b strings.Builder
		for i, cell := range line {
			cell = cut(cell, widths[i])
			b.WriteString(cell)
			if i < len(line)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+columnGap))
			}
		}
		if _, err := fmt.Fprintln(t.w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

const columnGap = 2

// widths returns the widths of the columns. The first column, an ID or name for other commands, is
// truncated last.
func (t *table) widths() []int {
	widths := make([]int, len(t.rows[0]))
	total := columnGap * (len(widths) - 1)
	for i := range widths {
		for _, line := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(line[i]))
		}
		total += widths[i]
	}
	for _, least := range []struct{ first, other int }{{1 << 20, 16}, {20, 16}, {20, 6}} {
		for t.width > 0 && total > t.width {
			widest := -1
			for i, w := range widths {
				if (i == 0 && w > least.first || i > 0 && w > least.other) && (widest < 0 || w > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
			total--
		}
	}
	return widths
}

func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + admin.CutMark
}
