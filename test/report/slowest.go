package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// These are the lengths of the lists.
const (
	slowestPackages = 10
	slowestTests    = 20
)

// slowest lists the slowest packages and top-level tests with their wall time and processor time.
func (r *report) slowest() {
	processor := r.processor()
	r.table(slowestPackages, "packages", processor, func(n name) bool { return n.test == "" })
	r.table(slowestTests, "tests", processor, func(n name) bool {
		return n.test != "" && !strings.Contains(n.test, "/")
	})
}

func (r *report) table(most int, what string, processor map[name]time.Duration, listed func(name) bool) {
	var rows []name
	for n, took := range r.took {
		if listed(n) && took > 0 {
			rows = append(rows, n)
		}
	}
	if len(rows) == 0 {
		return
	}
	slices.SortFunc(rows, func(a, b name) int { return cmp.Compare(r.took[b], r.took[a]) })
	fmt.Fprintf(r.out, "\nThe slowest %s, in seconds:\n", what)
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "wall\tprocessor\t")
	for _, n := range rows[:min(len(rows), most)] {
		spent := "-"
		if p := processor[n]; p > 0 {
			spent = fmt.Sprintf("%.1f", p.Seconds())
		}
		fmt.Fprintf(w, "%.1f\t%s\t  %s\n", r.took[n].Seconds(), spent, strings.TrimSpace(short(n.pkg)+" "+n.test))
	}
	w.Flush()
	if what == "packages" {
		var sum time.Duration
		for n, p := range processor {
			if n.test == "" {
				sum += p
			}
		}
		fmt.Fprintf(r.out, "All test programs: %.0f s of the processor.\n", sum.Seconds())
	}
}

// processor returns the processor times of test programs and their tests.
func (r *report) processor() map[name]time.Duration {
	out, pkgs := map[name]time.Duration{}, map[string]string{}
	for n := range r.took {
		pkgs[short(n.pkg)] = n.pkg
	}
	files, _ := filepath.Glob(filepath.Join(r.spent, "*.json")) // the pattern is good
	for _, file := range files {
		var s spent
		b, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(b, &s) != nil {
			continue // the program was killed while it wrote
		}
		dir, err := filepath.Rel(r.root, s.Dir)
		pkg := pkgs[filepath.ToSlash(dir)]
		if err != nil || pkg == "" {
			continue
		}
		out[name{pkg, ""}] = s.Total
		for test, d := range s.Tests {
			out[name{pkg, test}] = d
		}
	}
	return out
}
