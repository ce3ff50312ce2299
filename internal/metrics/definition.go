package metrics

import (
	"slices"
	"strings"
)

// Kind is what a metric is for Prometheus.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Definition is all that is known of a metric. The server registers it, and the dashboard, the alert
// rules, their tests and the tables of docs/metrics.md are written from it.
type Definition struct {
	Name   string
	Kind   Kind
	Help   string
	Labels []Label
	Most   int // series, where a label has no closed set of values
	// Begin are series of a counter that are there from the start: an increase is seen from the first
	// event on only where there was a zero before.
	Begin   [][]string
	Buckets []float64 // of a histogram, in seconds
	Panel   Panel
	Alerts  []Alert
}

// Label is a label. A value that is not among Values is told as Other.
type Label struct {
	Name   string
	Values []string // nil: what is configured, or counted; Definition.Most bounds the series
}

// Other stands for each value that a label has no place for.
const Other = "other"

// Panel is how the dashboard shows a metric.
type Panel struct {
	Row   string
	Title string // "": it is not shown
	Unit  string // as Grafana names units
	By    string // the label by which it is split; "": by none
	Where string // a selector, such as `endpoint="token"`
	Total bool   // the sum over the time that is shown, as bars, in place of a rate
}

// Alert is a rule. Fires and Quiet are series by which promtool tries it: an hour of them makes it
// fire, or not.
type Alert struct {
	Name     string
	Expr     string
	For      string
	Severity string // critical: someone has to act now; warning: today
	Summary  string
	Action   string            // what to do
	Labels   map[string]string // that it fires with in its test
	Fires    []Series
	Quiet    []Series
}

// Series are values in the notation of promtool, one for each minute.
type Series struct{ Name, Values string }

// maxLabels is how many labels a metric may have.
const maxLabels = 3

// closed reports whether all labels have closed sets of values.
func (d Definition) closed() bool {
	return !slices.ContainsFunc(d.Labels, func(l Label) bool { return l.Values == nil })
}

// Bound is how many series a metric has at most. A histogram of n buckets counts as one here: it has
// n + 3 names for each.
func (d Definition) Bound() int {
	closed := 1
	for _, l := range d.Labels {
		if l.Values != nil {
			closed *= len(l.Values) + 1 // Other
		}
	}
	if d.closed() {
		return closed
	}
	return d.Most + closed // those in which each open label is Other
}

// admit is a value as the label has it.
func (l Label) admit(value string) string {
	if l.Values == nil {
		return strings.ToValidUTF8(cut(value), "")
	}
	if !slices.Contains(l.Values, value) {
		return Other
	}
	return value
}

// maxValue bounds a value in bytes.
const maxValue = 100

func cut(s string) string { return s[:min(len(s), maxValue)] }
