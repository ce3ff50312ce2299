package pages

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/text"
)

// Branding customizes the look and texts of the pages. The zero value is the default design.
type Branding struct {
	// Logo is an SVG or PNG image of at most MaxLogo bytes, shown beside the product's name.
	Logo []byte
	// AccentLight and AccentDark are the colours of buttons and links on light and dark pages, as
	// #rrggbb; "" for the default.
	AccentLight, AccentDark string
	// Texts holds files as described in package text: replacements for built-in texts, and
	// additional languages. Nil for none.
	Texts fs.FS
}

// MaxLogo is the maximum size of a logo, in bytes.
const MaxLogo = 256 << 10

// Errors from Check wrap the one for the invalid part.
var (
	ErrLogo        = errors.New("logo")
	ErrAccentLight = errors.New("accent.light")
	ErrAccentDark  = errors.New("accent.dark")
	ErrTexts       = errors.New("texts")
)

// Check returns all errors in the branding.
func (b Branding) Check() error {
	_, errLogo := b.logo()
	_, errTexts := text.Load(b.Texts)
	return errors.Join(
		partly(ErrLogo, errLogo),
		partly(ErrAccentLight, checkAccent(b.AccentLight, lightPage, "darker")),
		partly(ErrAccentDark, checkAccent(b.AccentDark, darkPage, "lighter")),
		partly(ErrTexts, errTexts),
	)
}

func partly(part, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", part, err)
}

// logo returns the logo's asset name, or "" without a logo.
func (b Branding) logo() (string, error) {
	switch head := bytes.TrimLeft(b.Logo[:min(len(b.Logo), 1024)], "\ufeff \t\r\n"); {
	case len(b.Logo) == 0:
		return "", nil
	case len(b.Logo) > MaxLogo:
		return "", fmt.Errorf("has %d bytes, the limit is %d", len(b.Logo), MaxLogo)
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "logo.png", nil
	case bytes.HasPrefix(head, []byte("<svg")),
		bytes.HasPrefix(head, []byte("<?xml")) && bytes.Contains(b.Logo, []byte("<svg")):
		return "logo.svg", nil
	}
	return "", errors.New("is neither an SVG nor a PNG image")
}

// The default accent in the style sheet.
const ourLight, ourDark = "#0f5c4d", "#84d6be"

// The backgrounds of links and buttons: page, card and sunk in the style sheet.
var (
	lightPage = []string{"#f3f1ec", "#fffefb", "#f7f5f0"}
	darkPage  = []string{"#121412", "#1b1e1b", "#232723"}
)

// minContrast is the required contrast of text and background (WCAG 2.2 §1.4.3, level AA).
const minContrast = 4.5

func checkAccent(colour string, pages []string, better string) error {
	if colour == "" {
		return nil
	}
	if _, err := luminance(colour); err != nil {
		return err
	}
	for _, page := range pages {
		if got := contrast(colour, page); got < minContrast {
			return fmt.Errorf("%s on the background %s has a contrast of %.2f to 1, and text needs %.1f to 1: "+
				"choose a %s colour", colour, page, math.Floor(got*100)/100, minContrast, better)
		}
	}
	return nil
}

// contrast returns the contrast ratio of two colours (WCAG 2.2, "contrast ratio").
func contrast(a, b string) float64 {
	x, _ := luminance(a)
	y, _ := luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// luminance returns the relative luminance of a colour (WCAG 2.2, "relative luminance").
func luminance(colour string) (float64, error) {
	digits, ok := strings.CutPrefix(colour, "#")
	rgb, err := strconv.ParseUint(digits, 16, 32)
	if !ok || len(digits) != 6 || err != nil {
		return 0, fmt.Errorf("%q is not a colour such as #0f5c4d", colour)
	}
	out := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		c := float64(rgb>>(16-8*i)&0xff) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		out += weight * c
	}
	return out, nil
}

// style returns a style sheet with the configured colours, or "" for the default.
func (b Branding) style() string {
	if b.AccentLight == "" && b.AccentDark == "" {
		return ""
	}
	var css strings.Builder
	css.WriteString(":root {\n")
	light, dark := cmp.Or(b.AccentLight, ourLight), cmp.Or(b.AccentDark, ourDark)
	fmt.Fprintf(&css, "  --accent: light-dark(%s, %s);\n", light, dark)
	fmt.Fprintf(&css, "  --on-accent: light-dark(%s, %s);\n", on(light), on(dark))
	fmt.Fprintf(&css, "  --accent-hover: light-dark(color-mix(in srgb, %s, black 20%%), ", light)
	fmt.Fprintf(&css, "color-mix(in srgb, %s, white 20%%));\n", dark)
	css.WriteString("  --tint: color-mix(in srgb, var(--accent) 10%, var(--card));\n}\n")
	return css.String()
}

// on returns black or white, whichever is more readable on a colour. One of them always has enough
// contrast.
func on(colour string) string {
	if contrast(colour, "#ffffff") >= contrast(colour, "#000000") {
		return "#ffffff"
	}
	return "#000000"
}

// dress adds the branding's assets. It returns the layout parts that show them, by the names of the
// replaced templates.
func (b Branding) dress(a *assets) (parts map[string]string, err error) {
	if err := b.Check(); err != nil {
		return nil, fmt.Errorf("pages: branding: %w", err)
	}
	logo, err := b.logo()
	if err != nil {
		return nil, fmt.Errorf("pages: branding: %w", err)
	}
	parts = make(map[string]string)
	if css := b.style(); css != "" {
		a.add("brand.css", []byte(css))
		parts["brand"] = "\n" + `<link rel="stylesheet" href="{{asset "brand.css"}}">`
	}
	if logo != "" {
		a.add(logo, b.Logo)
		parts["mark"] = `<img class="mark" src="{{asset "` + logo + `"}}" alt="">`
	}
	return parts, nil
}
