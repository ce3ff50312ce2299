package main

import (
	"maps"

	"go.yaml.in/yaml/v3"

	"github.com/mcp-authd/mcp-authd/internal/metrics"
)

const head = "# Written from internal/metrics by: go generate ./internal/metrics\n"

type ruleFile struct {
	Groups []ruleGroup `yaml:"groups"`
}

type ruleGroup struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// rules returns the alert rules in Prometheus's format.
func rules() ([]byte, error) {
	group := ruleGroup{Name: "mcp-authd"}
	for _, d := range metrics.Definitions() {
		for _, a := range d.Alerts {
			group.Rules = append(group.Rules, rule{
				Alert: a.Name, Expr: a.Expr, For: a.For,
				Labels: map[string]string{"severity": a.Severity}, Annotations: annotations(a),
			})
		}
	}
	return written(ruleFile{[]ruleGroup{group}})
}

func annotations(a metrics.Alert) map[string]string {
	return map[string]string{"summary": a.Summary, "description": a.Action}
}

type testFile struct {
	RuleFiles []string   `yaml:"rule_files"`
	Every     string     `yaml:"evaluation_interval"`
	Tests     []ruleTest `yaml:"tests"`
}

type ruleTest struct {
	Name     string       `yaml:"name"`
	Interval string       `yaml:"interval"`
	Input    []testSeries `yaml:"input_series"`
	Alerts   []testAlert  `yaml:"alert_rule_test"`
}

type testSeries struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type testAlert struct {
	At       string     `yaml:"eval_time"`
	Alert    string     `yaml:"alertname"`
	Expected []expected `yaml:"exp_alerts"`
}

type expected struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

// ruleTests returns the tests of the rules in promtool's format. Each alert must fire with one set
// of series and not with another. file is the file of the rules.
func ruleTests(file string) ([]byte, error) {
	out := testFile{RuleFiles: []string{file}, Every: "1m"}
	for _, d := range metrics.Definitions() {
		for _, a := range d.Alerts {
			out.Tests = append(out.Tests, tried(a, "fires", a.Fires, true), tried(a, "is quiet", a.Quiet, false))
		}
	}
	return written(out)
}

func tried(a metrics.Alert, verb string, input []metrics.Series, fires bool) ruleTest {
	t := ruleTest{Name: a.Name + " " + verb, Interval: "1m", Alerts: []testAlert{{At: "1h", Alert: a.Name}}}
	for _, s := range input {
		t.Input = append(t.Input, testSeries{s.Name, s.Values})
	}
	t.Alerts[0].Expected = []expected{}
	if fires {
		labels := map[string]string{"severity": a.Severity}
		maps.Copy(labels, a.Labels)
		t.Alerts[0].Expected = []expected{{labels, annotations(a)}}
	}
	return t
}

func written(v any) ([]byte, error) {
	b, err := yaml.Marshal(v)
	return append([]byte(head), b...), err
}
