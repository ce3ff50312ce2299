package metrics

import (
	"slices"
	"strings"
)

// Kind is the Prometheus type of a metric.
type Kind string

// These are the kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Definition is the complete description of a metric. The server registers it. The dashboard, the
// alert rules, their tests and the tables of docs/metrics.md are generated from it.
type Definition struct {
	Name   string
	Kind   Kind
	Help   string
	Labels []Label
	Most   int // maximum number of series if a label has an open set of values
	// Begin lists series of a counter that exist from the start. Otherwise Prometheus would not see
	// an increase at the first event.
	Begin   [][]string
	Buckets []float64 // for a histogram, in seconds
	Panel   Panel
	Alerts  []Alert
}

// Label is a label. A value that is not in Values becomes Other.
type Label struct {
	Name   string
	Values []string // nil: configured or counted values; Definition.Most limits the series
}

// Other replaces each value that a label does not list.
const Other = "other"

// Panel describes the dashboard panel of a metric.
type Panel struct {
	Row   string
	Title string // "": no panel
	Unit  string // Grafana's name of the unit
	By    string // label to group by; "": no grouping
	Where string // a selector, such as `endpoint="token"`
	Total bool   // bars with the total over the displayed time instead of a rate
}

// Alert is an alert rule. promtool tests it with one hour of series: with Fires it must fire, and
// with Quiet it must not.
type Alert struct {
	Name     string
	Expr     string
	For      string
	Severity string // critical: act now; warning: act today
	Summary  string
	Action   string            // remedy
	Labels   map[string]string // labels of the alert in its test
	Fires    []Series
	Quiet    []Series
}

// Series holds values in promtool's notation, one per minute.
type Series struct{ Name, Values string }

// maxLabels is the maximum number of labels of a metric.
const maxLabels = 3

// closed reports whether all labels have closed sets of values.
func (d Definition) closed() bool {
	return !slices.ContainsFunc(d.Labels, func(l Label) bool { return l.Values == nil })
}

// Bound returns the maximum number of series of a metric. A histogram of n buckets counts as one
// series here, but has n + 3 time series.
func (d Definition) Bound() int {
	closed := 1
	for _, l := range d.Labels {
		if l.Values != nil {
			closed *= len(l.Values) + 1 // plus Other
		}
	}
	if d.closed() {
		return closed
	}
	return d.Most + closed // plus the series with Other in every open label
}

// admit returns the value that the label uses for value.
func (l Label) admit(value string) string {
	if l.Values == nil {
		return strings.ToValidUTF8(cut(value), "")
	}
	if !slices.Contains(l.Values, value) {
		return Other
	}
	return value
}

// maxValue is the maximum length of a value in bytes.
const maxValue = 100

func cut(s string) string { return s[:min(len(s), maxValue)] }
