package clearance

import (
	"fmt"
	"strconv"
	"unicode"
)

// Row is a displayed line of arguments.
type Row struct {
	Depth int // 0 for the top-level members
	Name  []Piece
	// Index is the position of an array element, from 1; 0 for a member, which has a Name.
	Index int
	Kind  Kind
	Value []Piece // of a literal or a string
	Count int     // number of values in an array or object
}

// Piece is a part of a text. Characters that are invisible or misleading are marked, and Text is
// then their name.
type Piece struct {
	Text   string
	Marked bool
	Break  bool // followed by a line break
}

// Rows returns the arguments in their original order, without omissions.
func (a Arguments) Rows() []Row { return a.rows(nil, 0) }

func (v Value) rows(out []Row, depth int) []Row {
	for i, item := range v.Items {
		row := Row{Depth: depth, Kind: item.Kind, Count: len(item.Items)}
		if v.Kind == Object {
			row.Name = Pieces(v.Names[i])
		} else {
			row.Index = i + 1
		}
		if item.Kind == Literal || item.Kind == String {
			row.Value = Pieces(item.Text)
		}
		out = item.rows(append(out, row), depth+1)
	}
	return out
}

// maxMarks is the maximum number of consecutive combining marks that are displayed as they are.
// More could cover the text nearby.
const maxMarks = 4

// Pieces returns the displayed form of a text.
func Pieces(s string) (out []Piece) {
	plain, marks := "", 0
	flush := func() {
		if plain != "" {
			out = append(out, Piece{Text: plain})
		}
		plain = ""
	}
	for i, r := range s {
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		if visible(r) && marks <= maxMarks && !(marks > 0 && i == 0) {
			plain += string(r)
			continue
		}
		flush()
		out = append(out, Piece{Text: fmt.Sprintf("U+%04X", r), Marked: true, Break: r == '\n'})
	}
	flush()
	return out
}

// visible reports whether a character has a visible form. Controls, direction marks, unusual
// spaces, and characters without width or assigned form do not.
func visible(r rune) bool {
	return unicode.IsPrint(r) && r != '\u2800' &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Plain returns a text with the names of invisible characters in place of them, for output without
// marks.
func Plain(s string) (out string) {
	for _, p := range Pieces(s) {
		if p.Marked {
			out += "[" + p.Text + "]"
			continue
		}
		out += p.Text
	}
	return out
}

// Label returns the name of a row as text.
func (r Row) Label() string {
	if r.Index > 0 {
		return strconv.Itoa(r.Index)
	}
	out := ""
	for _, p := range r.Name {
		out += p.Text
	}
	return out
}
