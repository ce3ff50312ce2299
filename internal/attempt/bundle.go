package attempt

import (
	_ "embed"
	"html/template"
	"io"
	"net/url"
	"sync"
	"time"
)

// Bundle is an attempt in a form that can be published, for example in an issue of the client
// (OB-03). Users, addresses, IDs, hosts and all texts chosen by others are replaced with
// placeholders. Equal texts get the same placeholder.
type Bundle struct {
	Format string `json:"format"`
	Server string `json:"server"` // the version of mcp-authd
	Attempt
	Events  []Step `json:"events"`
	LeftOut int    `json:"events_left_out"`
}

// BundleFormat names the format of a Bundle.
const BundleFormat = "mcp-authd attempt bundle 1"

// Publish builds the bundle of an attempt. operator lists the addresses of the issuer and the MCP
// servers. Their hosts become placeholders even if they are well known.
func Publish(a Attempt, server string, operator []string) Bundle {
	p := &publisher{given: map[string]map[string]string{}}
	for _, address := range operator {
		if u, err := url.Parse(address); err == nil {
			p.own = append(p.own, u.Hostname())
		}
	}
	var steps []Step
	for _, s := range a.all {
		steps = append(steps, p.step(s))
	}
	out := newAttempt(steps, a.judged)
	if out.Fault != a.Fault { // the verdict depended on a value that is now a placeholder
		out.Verdict = a.Fault.verdict(a.Fault.explained().What)
		out.Next, out.Decided = out.Advice.of(out.Whose), a.Decided
	}
	if a.Known != "" { // from clients.json
		out.Known, out.Advice, out.Next = a.Known, a.Advice, a.Next
	}
	out.Reference, out.Verdict.Difference = p.reference(a.Reference), p.difference(a.Difference)
	return Bundle{BundleFormat, server, out, out.Steps, out.LeftOut}
}

//go:embed bundle.html
var bundleFile string

var bundlePage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("bundle").Funcs(template.FuncMap{
		"after": func(step, began time.Time) string { return step.Sub(began).Round(time.Millisecond).String() },
	}).Parse(bundleFile))
})

// Page writes the bundle as one self-contained HTML page without script. style is the style sheet
// of the server's pages.
func (b Bundle) Page(w io.Writer, style string) error {
	return bundlePage().Execute(w, struct {
		Bundle
		Style template.CSS
	}{b, template.CSS(style)}) //nolint:gosec // of ours
}
