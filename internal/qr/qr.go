// Package qr draws QR codes as the path of an inline SVG, which a page can show under a content
// security policy without images from elsewhere, at any size, and without script.
package qr

import (
	"fmt"
	"image/color"
	"strings"

	"github.com/boombuler/barcode/qr"
)

// quiet is the margin around a code, in modules (ISO/IEC 18004 §6.3.8).
const quiet = 4

// Path returns the d of an SVG path that draws the dark modules of the code for a text, each one
// unit wide, and the side of the square viewBox with the quiet zone around it. An error means that
// the text is too long for a code.
func Path(text string) (d string, size int, err error) {
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return "", 0, fmt.Errorf("qr: %w", err)
	}
	var b strings.Builder
	side := code.Bounds().Dx()
	for y := range side {
		for x := 0; x < side; x++ {
			run := 0
			for x+run < side && code.At(x+run, y) == color.Black {
				run++
			}
			if run > 0 {
				fmt.Fprintf(&b, "M%d %dh%dv1h-%dz", x+quiet, y+quiet, run, run)
				x += run
			}
		}
	}
	return b.String(), side + 2*quiet, nil
}

// Text returns the code for a text in characters for a terminal, of which each is two modules, one
// above the other. The light modules are drawn: most terminals have a dark ground, and readers take
// a code on a light one all the same.
func Text(text string) (string, error) {
	code, err := qr.Encode(text, qr.L, qr.Auto)
	if err != nil {
		return "", fmt.Errorf("qr: %w", err)
	}
	side := code.Bounds().Dx()
	light := func(x, y int) bool {
		return x < 0 || y < 0 || x >= side || y >= side || code.At(x, y) != color.Black
	}
	var b strings.Builder
	for y := -quiet; y < side+quiet; y += 2 {
		for x := -quiet; x < side+quiet; x++ {
			b.WriteString(halves[light(x, y)][light(x, y+1)])
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// halves are the characters for an upper and a lower module that are light or not.
var halves = map[bool]map[bool]string{
	false: {false: " ", true: "▄"},
	true:  {false: "▀", true: "█"},
}
