package audittest

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pagetest"
)

var update = flag.Bool("update", false, "write docs/reference/audit-events.md")

const refresh = "go test ./internal/testkit/audittest -run TestReference"

// TestReference: DL-05: the reference page of events is generated from events.yaml. TestTable
// compares that file with the code.
func TestReference(t *testing.T) {
	pagetest.Is(t, *update, "reference/audit-events.md", page(read(t)), refresh)
}

func page(f file) string {
	var b strings.Builder
	b.WriteString("# Audit events\n\n<!-- Made by: " + refresh + " -update -->\n\n")
	b.WriteString(pagetest.Words("This page lists the events that the server logs and keeps in the [audit log](../audit.md), with their " +
		"fields. Names of events and fields are stable. For data that is never logged, see " +
		"[logs](../operating/health.md#logs)."))
	b.WriteString("\n## Fields of any event\n\n")
	b.WriteString(pagetest.Words("Any event, and the log line of a request, can have these fields, always under the same name. An event has " +
		"the fields that are known when it happens:"))
	b.WriteString("\n| field | meaning |\n|---|---|\n")
	for _, field := range f.Fields {
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.Join(field.Names, "`, `"), pagetest.Cell(pagetest.Above(field.Is)))
	}
	for _, area := range f.Areas {
		fmt.Fprintf(&b, "\n## %s\n\n| event | when | further fields |\n|---|---|---|\n", area.Area)
		for _, e := range area.Events {
			fields := ""
			if len(e.Fields) > 0 {
				fields = "`" + strings.Join(e.Fields, "`, `") + "` "
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s|\n", e.Event, pagetest.Cell(pagetest.Above(e.When)), fields)
		}
	}
	return b.String()
}
