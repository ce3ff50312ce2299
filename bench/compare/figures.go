package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// figure identifies a measurement: a benchmark and a unit.
type figure struct{ benchmark, unit string }

// figures holds the values of one round.
type figures map[figure]float64

// processors matches the suffix that the testing package adds to a name.
var processors = regexp.MustCompile(`-\d+$`)

// read parses the output of a test binary.
func (f figures) read(pkg, text string) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := pkg + " " + processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				f[figure{name, fields[i+1]}] = v
			}
		}
	}
}

// comparison is a figure of both trees, over all rounds.
type comparison struct {
	figure
	before, after  float64 // medians
	ratio          float64 // of the medians
	least, highest float64 // ratios of single rounds
}

// compare returns the figures that both have, and the benchmarks that only one has.
func compare(before, after []figures) (both []comparison, only []string) {
	known := map[figure]bool{}
	for _, round := range slices.Concat(before, after) {
		for k := range round {
			known[k] = true
		}
	}
	for k := range known {
		b, a, ratios := paired(before, after, k)
		switch {
		case len(ratios) == 0 && k.unit == "ns/op":
			only = append(only, k.benchmark)
		case len(ratios) > 0:
			c := comparison{
				figure: k, before: median(b), after: median(a), least: slices.Min(ratios), highest: slices.Max(ratios),
			}
			c.ratio = quotient(c.after, c.before)
			both = append(both, c)
		}
	}
	slices.Sort(only)
	slices.SortFunc(both, func(x, y comparison) int {
		return strings.Compare(x.benchmark+"\x00"+x.unit, y.benchmark+"\x00"+y.unit)
	})
	return both, only
}

// paired returns the values of a figure in the rounds where both sides have it.
func paired(before, after []figures, k figure) (b, a, ratios []float64) {
	for i := range min(len(before), len(after)) {
		x, hasX := before[i][k]
		y, hasY := after[i][k]
		if hasX && hasY {
			b, a, ratios = append(b, x), append(a, y), append(ratios, quotient(y, x))
		}
	}
	return b, a, ratios
}

// quotient returns 1 for two zeros, such as a lack of allocations.
func quotient(y, x float64) float64 {
	if x == y {
		return 1
	}
	return y / x
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}

// mark labels a difference that exceeds the noise.
func (c comparison) mark() string {
	switch {
	case c.ratio >= 1.05 && c.least > 1:
		return "more"
	case c.ratio <= 0.95 && c.highest < 1:
		return "less"
	}
	return ""
}

// report prints time and bytes. It prints allocations only if they have changed.
func report(out io.Writer, before, after []figures) {
	both, only := compare(before, after)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "benchmark\tunit\tbase\tnow\tratio\tspread\t")
	marks := map[string]int{}
	for _, c := range both {
		if c.unit == "allocs/op" && c.mark() == "" {
			continue
		}
		marks[c.mark()]++
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.2f\t%.2f to %.2f\t%s\n", c.benchmark, c.unit,
			short(c.before), short(c.after), c.ratio, c.least, c.highest, c.mark())
	}
	w.Flush()
	delete(marks, "")
	for _, m := range slices.Sorted(maps.Keys(marks)) {
		fmt.Fprintf(out, "%d cost %s\n", marks[m], m)
	}
	for _, name := range only {
		fmt.Fprintf(out, "only one has %s\n", name)
	}
}

// short keeps four digits.
func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
