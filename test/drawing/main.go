// Command drawing generates docs/architecture.svg from docs/architecture.txt: rows of boxes with
// arrows between them. Run it from the root of the repository with "make drawing".
package main

import (
	"fmt"
	"os"
	"strings"
)

const (
	source = "docs/architecture.txt"
	target = "docs/architecture.svg"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	d, err := parse(string(text))
	if err != nil {
		return err
	}
	return os.WriteFile(target, []byte(d.svg()), 0o644)
}

// room is a box: a directory with a caption.
type room struct {
	folder, caption string
	row             int
	x, y, w         int
}

// arrow leads from an importing room to the imported one.
type arrow struct{ from, to string }

type drawing struct {
	rows   int
	rooms  []*room
	arrows []arrow
}

// parse reads three kinds of lines: "row" begins a row of rooms, "FOLDER | CAPTION" is a room of
// the row, and "FOLDER -> FOLDER" is an arrow. It ignores empty lines and lines that begin with #.
func parse(text string) (*drawing, error) {
	d := &drawing{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		from, to, isArrow := strings.Cut(line, " -> ")
		folder, caption, isRoom := strings.Cut(line, " | ")
		switch {
		case line == "" || line[0] == '#':
		case line == "row":
			d.rows++
		case isRoom && d.rows > 0:
			d.rooms = append(d.rooms, &room{folder: folder, caption: caption, row: d.rows - 1})
		case isArrow && d.room(from) != nil && d.room(to) != nil:
			d.arrows = append(d.arrows, arrow{from, to})
		default:
			return nil, fmt.Errorf("%s: neither a row, a room nor an arrow between rooms: %q", source, line)
		}
	}
	d.place()
	return d, nil
}

func (d *drawing) room(folder string) *room {
	for _, r := range d.rooms {
		if r.folder == folder {
			return r
		}
	}
	return nil
}

const (
	width, margin   = 1120, 10
	boxHeight, step = 46, 100
	widest, between = 230, 16
)

// place sets the box of each room. Rooms of a row have the same width, and the row is centered.
func (d *drawing) place() {
	for row := range d.rows {
		var here []*room
		for _, r := range d.rooms {
			if r.row == row {
				here = append(here, r)
			}
		}
		n := len(here)
		if n == 0 {
			continue
		}
		w := min(widest, (width-2*margin-(n-1)*between)/n)
		gap := (width - 2*margin - n*w) / (n + 1)
		for i, r := range here {
			r.w, r.y = w, margin+row*step
			r.x = margin + gap + i*(w+gap)
		}
	}
}

const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif">
<style>
rect { fill: #f6f8fa; stroke: #57606a }
text { fill: #1f2328; text-anchor: middle }
path { fill: none; stroke: #57606a }
.folder { font-size: 13px; font-weight: 600 }
.caption { font-size: 11px }
@media (prefers-color-scheme: dark) {
rect { fill: #161b22; stroke: #8b949e }
text { fill: #e6edf3 }
path { stroke: #8b949e }
}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<path d="M 1 1 L 7 4 L 1 7"/></marker></defs>
`

func (d *drawing) svg() string {
	var b strings.Builder
	fmt.Fprintf(&b, head, width, 2*margin+(d.rows-1)*step+boxHeight)
	for _, a := range d.arrows {
		fmt.Fprintf(&b, "<path d=\"%s\" marker-end=\"url(#tip)\"/>\n", d.line(a))
	}
	for _, r := range d.rooms {
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", r.x, r.y, r.w, boxHeight)
		fmt.Fprintf(&b, "<text class=\"folder\" x=\"%d\" y=\"%d\">%s</text>\n", r.x+r.w/2, r.y+19,
			escaped.Replace(r.folder))
		fmt.Fprintf(&b, "<text class=\"caption\" x=\"%d\" y=\"%d\">%s</text>\n", r.x+r.w/2, r.y+36,
			escaped.Replace(r.caption))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// line returns the path of an arrow: between rows from edge to edge, within a row from side to
// side.
func (d *drawing) line(a arrow) string {
	from, to := d.room(a.from), d.room(a.to)
	if from.row == to.row {
		x1, x2 := from.x+from.w, to.x
		if from.x > to.x {
			x1, x2 = from.x, to.x+to.w
		}
		y := from.y + boxHeight/2
		return fmt.Sprintf("M %d %d L %d %d", x1, y, x2, y)
	}
	x1, y1, x2, y2 := from.x+from.w/2, from.y+boxHeight, to.x+to.w/2, to.y
	if from.row > to.row {
		y1, y2 = from.y, to.y+boxHeight
	}
	bend := (y2 - y1) / 2
	return fmt.Sprintf("M %d %d C %d %d %d %d %d %d", x1, y1, x1, y1+bend, x2, y2-bend, x2, y2)
}
