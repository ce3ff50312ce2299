package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/metrics"
)

// mark begins the generated part of the page.
const mark = "<!-- The tables below are written by: go generate ./internal/metrics -->\n"

// reference returns the page with current tables.
func reference(page []byte) ([]byte, error) {
	own, _, ok := bytes.Cut(page, []byte(mark))
	if !ok {
		return nil, fmt.Errorf("%s has no line %q", document, strings.TrimSpace(mark))
	}
	b := bytes.NewBuffer(bytes.Clone(own))
	b.WriteString(mark)
	b.WriteString("\n## The metrics\n\n| metric | kind | labels | most series | meaning |\n|---|---|---|---|---|\n")
	for _, d := range metrics.Definitions() {
		fmt.Fprintf(b, "| `%s` | %s | %s | %d | %s |\n", d.Name, d.Kind, labels(d), d.Bound(), d.Help)
	}
	b.WriteString("\n## The alerts\n\n| alert | severity | when | what to do |\n|---|---|---|---|\n")
	for _, d := range metrics.Definitions() {
		for _, a := range d.Alerts {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", a.Name, a.Severity, a.Summary, a.Action)
		}
	}
	return b.Bytes(), nil
}

func labels(d metrics.Definition) string {
	var out []string
	for _, l := range d.Labels {
		out = append(out, "`"+l.Name+"`"+values(l.Values))
	}
	return strings.Join(out, "; ")
}

// mostNamed is the maximum number of values that the page lists for a label.
const mostNamed = 20

func values(all []string) string {
	if all == nil || len(all) > mostNamed {
		return ""
	}
	return ": " + strings.Join(all, ", ")
}
