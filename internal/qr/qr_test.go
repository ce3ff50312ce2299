package qr

import (
	"fmt"
	"image/color"
	"strings"
	"testing"

	"github.com/boombuler/barcode/qr"
)

// drawn is a path of Path as modules.
func drawn(t *testing.T, d string, size int) [][]bool {
	t.Helper()
	out := make([][]bool, size)
	for y := range out {
		out[y] = make([]bool, size)
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(d, "M"), "M") {
		var x, y, run, back int
		if n, err := fmt.Sscanf(part, "%d %dh%dv1h-%dz", &x, &y, &run, &back); n != 4 || err != nil || run != back {
			t.Fatalf("got %q: %v", part, err)
		}
		for i := range run {
			out[y][x+i] = true
		}
	}
	return out
}

func TestPath(t *testing.T) {
	for name, text := range map[string]string{
		"an authenticator app": "otpauth://totp/mcp-authd:alice?algorithm=SHA1&digits=6&issuer=mcp-authd&period=30&secret=" +
			strings.Repeat("A", 32),
		"a short link":          "https://auth.example.com/device?user_code=BCDF-GHJK",
		"letters of a language": "日本語",
	} {
		t.Run("PE-05 the picture has the modules of the code and a quiet zone: "+name, func(t *testing.T) {
			d, size, err := Path(text)
			if err != nil {
				t.Fatal(err)
			}
			code, err := qr.Encode(text, qr.M, qr.Auto)
			if err != nil {
				t.Fatal(err)
			}
			side := code.Bounds().Dx()
			if size != side+8 {
				t.Fatalf("got %d, want %d and four modules around", size, side)
			}
			for y, row := range drawn(t, d, size) {
				for x, dark := range row {
					in := x >= 4 && y >= 4 && x < side+4 && y < side+4
					if want := in && code.At(x-4, y-4) == color.Black; dark != want {
						t.Fatalf("module %d,%d: got %v, want %v", x, y, dark, want)
					}
				}
			}
		})
	}
	t.Run("a text that no code holds is an error", func(t *testing.T) {
		if d, _, err := Path(strings.Repeat("a", 5000)); err == nil {
			t.Errorf("got %d bytes", len(d))
		}
	})
}

func TestText(t *testing.T) {
	const link = "https://auth.example.com/device?user_code=BCDF-GHJK"
	got, err := Text(link)
	if err != nil {
		t.Fatal(err)
	}
	code, err := qr.Encode(link, qr.L, qr.Auto)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	side := code.Bounds().Dx()
	if want := (side + 2*quiet + 1) / 2; len(lines) != want {
		t.Fatalf("got %d lines, want %d", len(lines), want)
	}
	for row, line := range lines {
		for column, r := range []rune(line) {
			for half, lights := range []string{"▀█", "▄█"} {
				x, y := column-quiet, 2*row+half-quiet
				in := x >= 0 && y >= 0 && x < side && y < side
				dark := in && code.At(x, y) == color.Black
				if dark == strings.ContainsRune(lights, r) {
					t.Fatalf("AS-240 module %d,%d: got %q, dark is %v", x, y, r, dark)
				}
			}
		}
	}
	if _, err := Text(strings.Repeat("a", 5000)); err == nil {
		t.Error("a text that no code can hold must be an error")
	}
}
