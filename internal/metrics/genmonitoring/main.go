// Command genmonitoring generates files from the metric definitions (OB-09): the dashboard, the
// alert rules with their tests, and the tables of docs/metrics.md. Its argument is the root of the
// repository.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

const (
	dashboardFile = "deploy/grafana/mcp-authd.json"
	rulesFile     = "deploy/prometheus/mcp-authd.rules.yaml"
	testsFile     = "deploy/prometheus/mcp-authd.rules.test.yaml"
	document      = "docs/metrics.md"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: genmonitoring ROOT")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(root string) error {
	all, err := files(root)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := os.WriteFile(filepath.Join(root, name), all[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

func files(root string) (out map[string][]byte, err error) {
	out = map[string][]byte{}
	if out[dashboardFile], err = board(); err != nil {
		return nil, err
	}
	if out[rulesFile], err = rules(); err != nil {
		return nil, err
	}
	if out[testsFile], err = ruleTests(filepath.Base(rulesFile)); err != nil {
		return nil, err
	}
	page, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		return nil, err
	}
	out[document], err = reference(page)
	return out, err
}
