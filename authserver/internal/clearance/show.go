package clearance

import (
	"fmt"
	"strconv"
	"unicode"
)

// Row is a line of arguments as people are shown them.
type Row struct {
	Depth int // 0 for the members of the arguments themselves
	Name  []Piece
	// Index is the place of an element in an array, from 1; 0: a member, which has a Name.
	Index int
	Kind  Kind
	Value []Piece // of a literal or a string
	Count int     // of an array or object: how many values it has
}

// Piece is a part of a text. What people would not see of it, or not as what it is, is marked, and
// Text is then its name.
type Piece struct {
	Text   string
	Marked bool
	Break  bool // a line ends behind it
}

// Rows are arguments in the order in which they came, nothing left out.
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

// maxMarks is how many combining marks in a row are shown as they are: more can cover what is near.
const maxMarks = 4

// Pieces is a text as people are shown it.
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

// visible reports whether a character has a form of its own. Controls, marks of direction, spaces other
// than the usual one, and what has no width or no assigned form do not.
func visible(r rune) bool {
	return unicode.IsPrint(r) && r != '\u2800' &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Plain is a text in which what people would not see stands by its name, for a place that has no marks.
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

// Label is the name of a row, as text.
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
