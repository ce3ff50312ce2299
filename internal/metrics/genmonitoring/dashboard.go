package main

import (
	"encoding/json"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/metrics"
)

// dashboard is the part of Grafana's dashboard model that we use.
type dashboard struct {
	Title      string     `json:"title"`
	UID        string     `json:"uid"`
	Tags       []string   `json:"tags"`
	Version    int        `json:"schemaVersion"`
	Refresh    string     `json:"refresh"`
	Time       span       `json:"time"`
	Templating templating `json:"templating"`
	Panels     []panel    `json:"panels"`
}

type span struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type templating struct {
	List []variable `json:"list"`
}

type variable struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	Type  string `json:"type"`
	Query string `json:"query"`
}

type panel struct {
	ID          int          `json:"id"`
	Type        string       `json:"type"`
	Title       string       `json:"title"`
	Description string       `json:"description,omitempty"`
	Place       place        `json:"gridPos"`
	Source      *source      `json:"datasource,omitempty"`
	Targets     []target     `json:"targets,omitempty"`
	Fields      *fieldConfig `json:"fieldConfig,omitempty"`
}

type place struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type target struct {
	Ref    string `json:"refId"`
	Expr   string `json:"expr"`
	Legend string `json:"legendFormat"`
	Now    bool   `json:"instant,omitempty"`
}

type fieldConfig struct {
	Defaults  fieldDefaults `json:"defaults"`
	Overrides []any         `json:"overrides"`
}

type fieldDefaults struct {
	Unit string `json:"unit"`
	Min  int    `json:"min"`
}

// Grafana's grid has 24 columns.
const (
	columns = 24
	width   = 12
	height  = 8
)

// board returns the dashboard in Grafana's import format.
func board() ([]byte, error) {
	d := dashboard{
		Title: "mcp-authd", UID: "mcp-authd", Tags: []string{"mcp-authd"}, Version: 39, Refresh: "1m",
		Time: span{"now-6h", "now"},
		Templating: templating{[]variable{
			{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus"},
		}},
	}
	y := 0
	for _, row := range metrics.Rows() {
		d.add(panel{Type: "row", Title: row, Place: place{1, columns, 0, y}})
		y++
		x := 0
		for _, def := range metrics.Definitions() {
			for _, p := range (shown{def}).panels(row) {
				if x == columns {
					x, y = 0, y+height
				}
				p.Place = place{height, width, x, y}
				d.add(p)
				x += width
			}
		}
		y += height
	}
	b, err := json.MarshalIndent(d, "", "  ")
	return append(b, '\n'), err
}

func (d *dashboard) add(p panel) {
	p.ID = len(d.Panels) + 1
	d.Panels = append(d.Panels, p)
}

type shown struct{ metrics.Definition }

// panels returns the panels of a metric in a row. A histogram has two: rate and duration.
func (d shown) panels(row string) []panel {
	switch {
	case d.Panel.Title == "" || d.Panel.Row != row:
		return nil
	case d.Kind == metrics.Histogram:
		return []panel{
			d.panel(d.Panel.Title, "ops", d.sum("rate(%s_count%s[$__rate_interval])")),
			d.panel(d.Panel.Title+": 95 of 100 are quicker", d.Panel.Unit, d.quantile()),
		}
	case d.Kind == metrics.Gauge:
		return []panel{d.panel(d.Panel.Title, d.Panel.Unit, d.aggregate("max", "%s%s"))}
	case d.Panel.Total:
		p := d.panel(d.Panel.Title, "none", d.sum("increase(%s%s[$__range])"))
		p.Type, p.Targets[0].Now = "bargauge", true
		return []panel{p}
	}
	return []panel{d.panel(d.Panel.Title, d.Panel.Unit, d.sum("rate(%s%s[$__rate_interval])"))}
}

func (d shown) panel(title, unit, expr string) panel {
	legend := title
	if d.Panel.By != "" {
		legend = "{{" + d.Panel.By + "}}"
	}
	if unit == "" {
		unit = "none"
	}
	return panel{
		Type: "timeseries", Title: title, Description: d.Help, Source: &source{"prometheus", "${datasource}"},
		Targets: []target{{Ref: "A", Expr: expr, Legend: legend}},
		Fields:  &fieldConfig{fieldDefaults{Unit: unit}, []any{}},
	}
}

// sum returns the sum of an expression, grouped by the panel's label.
func (d shown) sum(expr string) string { return d.aggregate("sum", expr) }

func (d shown) aggregate(how, expr string) string {
	inner := fmt.Sprintf(expr, d.Name, d.selector())
	if d.Panel.By == "" {
		return fmt.Sprintf("%s(%s)", how, inner)
	}
	return fmt.Sprintf("%s by (%s) (%s)", how, d.Panel.By, inner)
}

func (d shown) quantile() string {
	by := "le"
	if d.Panel.By != "" {
		by += ", " + d.Panel.By
	}
	return fmt.Sprintf("histogram_quantile(0.95, sum by (%s) (rate(%s_bucket%s[$__rate_interval])))", by, d.Name,
		d.selector())
}

func (d shown) selector() string {
	if d.Panel.Where == "" {
		return ""
	}
	return "{" + d.Panel.Where + "}"
}
