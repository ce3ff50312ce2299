package browser

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/browsertest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
)

var makePictures = flag.Bool("update", false, "make the pictures of the manual (docs/pictures)")

const (
	picturesDir   = "../../docs/pictures"
	pictureBudget = 600 << 10 // of all pictures together, in bytes
	pictureScale  = 2         // pixels of a picture per pixel of the page
)

// shown is the visible content of a page. If it changes, the picture of the page is out of date.
type shown struct {
	Heading  string   `json:"heading"`
	Controls []string `json:"controls"`
}

// pictures holds the pictures of the manual, by name.
type pictures struct {
	t     *testing.T
	made  map[string]shown
	pages string // all pages of the manual
}

// TestPictures: DL-05. The pictures of the manual exist and are used by a page. The headings and
// controls of the pictured pages have not changed since the pictures were taken. With -update it
// takes the pictures: make pictures.
func TestPictures(t *testing.T) {
	lane.Long(t, "a picture of the manual guards nothing")
	t.Parallel()
	p := &pictures{t: t, made: map[string]shown{}, pages: manualPages(t)}
	listen := "127.0.0.1:0"
	if *makePictures {
		listen = "127.0.0.1:8414" // the address in the manual's pages
	}
	d := demotest.Start(t, demotest.Options{Args: []string{"--listen", listen}})
	b := open(t, browsertest.Look{Name: "picture", Width: 390, Height: 844, Scheme: "light"})
	a := newApp(t, d, "Claude Code (notes)")

	b.visit(a.link(d))
	p.take(b, "sign-in", "main")
	b.signIn(d.Username, d.Password)
	p.take(b, "consent", "main")
	b.press("approve")
	a.redeem(t, d, a.answer(t, b).Get("code"))
	b.visit(d.Issuer + "/account")
	p.take(b, "connected", "section:has([data-grant])")

	b.visit(serve(t))
	b.Do(chromedp.WaitVisible(chromedp.CSS("input[name=username]")))
	p.take(b, "first-account", "main")

	s := install(t)
	issuer := s.at("localhost")
	s.start(t, issuer)
	b.visit(issuer + s.invite(t, "bob"))
	p.take(b, "invitation", "main")
	p.compare()
}

// take takes a picture of a part of a page, usually its card, in light and dark, and records its
// content.
func (p *pictures) take(b *tab, name, part string) {
	p.t.Helper()
	b.Do(chromedp.WaitVisible(chromedp.CSS("main h1")), chromedp.WaitVisible(chromedp.CSS(part)))
	const read = `(() => {
		const part = document.querySelector(%q);
		const text = (e) => e.textContent.trim().split(/\s+/).join(' ');
		const named = (e) => ['a', 'button', 'summary'].includes(e.localName) ? ': ' + text(e) : '';
		return {
			heading: text(part.querySelector('h1, h2')),
			controls: [...part.querySelectorAll('a[href], button, input:not([type=hidden]), summary, select')].map((e) =>
				e.localName + ' ' + (e.name || e.type || '') + named(e)),
		};
	})()`
	p.made[name] = eval[shown](b, fmt.Sprintf(read, part))
	if !*makePictures {
		return
	}
	for scheme, file := range files(name) {
		b.shade(scheme)
		const box = `(() => {
			document.activeElement?.blur();
			const r = document.querySelector(%q).getBoundingClientRect();
			return [r.left + scrollX, r.top + scrollY, r.width, r.height];
		})()`
		at := eval[[]float64](b, fmt.Sprintf(box, part))
		full, err := browsertest.Run(b.Tab, chromedp.FullScreenshot(100))
		if err != nil {
			p.t.Fatal(err)
		}
		p.save(file, full, at)
	}
	b.shade("light")
}

// shade shows the page in a color scheme, at double resolution.
func (b *tab) shade(scheme string) {
	b.TB.Helper()
	l := b.Look
	l.Scheme = scheme
	b.Dress(l)
	b.Do(chromedp.EmulateViewport(b.Look.Width, b.Look.Height, chromedp.EmulateScale(pictureScale)))
}

// save saves the part of a screenshot given by at, in pixels of the page.
func (p *pictures) save(name string, full []byte, at []float64) {
	p.t.Helper()
	img, err := png.Decode(bytes.NewReader(full))
	if err != nil {
		p.t.Fatal(err)
	}
	const margin = 4
	px := func(v float64) int { return int(v * pictureScale) }
	crop := image.Rect(px(at[0]-margin), px(at[1]-margin), px(at[0]+at[2]+margin), px(at[1]+at[3]+margin))
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, fewColors(img, crop.Intersect(img.Bounds()))); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(picturesDir, name), out.Bytes(), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// fewColors returns a part of a picture in 256 colors, which takes a quarter of the space. It uses
// the most frequent colors and replaces the others with the nearest of these. A page of text and
// flat areas has hardly more colors.
func fewColors(img image.Image, part image.Rectangle) *image.Paletted {
	at := func(x, y int) color.RGBA {
		r, g, b, _ := img.At(part.Min.X+x, part.Min.Y+y).RGBA()
		return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0xff}
	}
	count := map[color.RGBA]int{}
	for y := range part.Dy() {
		for x := range part.Dx() {
			count[at(x, y)]++
		}
	}
	byCount := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	var palette color.Palette
	for _, c := range byCount[:min(len(byCount), 256)] {
		palette = append(palette, c)
	}
	index := map[color.RGBA]uint8{}
	for _, c := range byCount {
		index[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(image.Rect(0, 0, part.Dx(), part.Dy()), palette)
	for y := range part.Dy() {
		for x := range part.Dx() {
			out.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	return out
}

// files returns the files of a picture by color scheme.
func files(name string) map[string]string {
	return map[string]string{"light": name + ".png", "dark": name + "-dark.png"}
}

// redeem exchanges the code like an application, which connects the application.
func (a *app) redeem(t *testing.T, d *demotest.Demo, code string) {
	t.Helper()
	resp, err := http.PostForm(d.Issuer+"/token", url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "client_id": {a.id},
		"redirect_uri": {a.URL + "/callback"}, "code_verifier": {strings.Repeat("v", 43)}, "resource": {d.MCPURL},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("token: %s", resp.Status)
	}
}

// compare compares the pages with those in the pictures.
func (p *pictures) compare() {
	p.t.Helper()
	list := filepath.Join(picturesDir, "pictures.json")
	if *makePictures {
		b, err := json.MarshalIndent(p.made, "", "  ")
		if err == nil {
			err = os.WriteFile(list, append(b, '\n'), 0o644)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
	b, err := os.ReadFile(list)
	if err != nil {
		p.t.Fatal(err)
	}
	of := map[string]shown{}
	if err := json.Unmarshal(b, &of); err != nil {
		p.t.Fatal(err)
	}
	size := int64(0)
	for name, now := range p.made {
		for _, what := range outdated(of[name], now) {
			p.t.Errorf("DL-05: the picture %s is out of date: %s. Make it again: make pictures", name, what)
		}
		if !strings.Contains(p.pages, "(pictures/"+name+".png)") {
			p.t.Errorf("no page of the manual shows %s", name)
		}
		for _, file := range files(name) {
			info, err := os.Stat(filepath.Join(picturesDir, file))
			if err != nil {
				p.t.Error(err)
				continue
			}
			size += info.Size()
		}
	}
	if size > pictureBudget {
		p.t.Errorf("the pictures have %d bytes, the limit is %d", size, pictureBudget)
	}
	if len(of) != len(p.made) {
		p.t.Errorf("there are %d pictures, and %d pages were looked at", len(of), len(p.made))
	}
}

// outdated returns the differences between a page and its picture.
func outdated(of, now shown) (how []string) {
	if of.Heading != now.Heading {
		how = append(how, fmt.Sprintf("its heading was %q, and is %q", of.Heading, now.Heading))
	}
	if !slices.Equal(of.Controls, now.Controls) {
		how = append(how, fmt.Sprintf("its controls were\n%s\nand are\n%s", strings.Join(of.Controls, "\n"),
			strings.Join(now.Controls, "\n")))
	}
	return how
}

// TestOutdated checks that a changed heading, and added, removed or renamed buttons, are found.
func TestOutdated(t *testing.T) {
	t.Parallel()
	is := shown{"Approve access?", []string{"button decision: Deny", "button decision: Approve"}}
	for _, c := range []struct {
		now  shown
		want string
	}{
		{is, ""},
		{shown{"Allow?", is.Controls}, "its heading"},
		{shown{is.Heading, is.Controls[:1]}, "its controls"},
		{shown{is.Heading, []string{"button decision: Deny", "button decision: Allow"}}, "its controls"},
	} {
		got := strings.Join(outdated(is, c.now), "\n")
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func manualPages(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manual: %v", err)
	}
	var all strings.Builder
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}
