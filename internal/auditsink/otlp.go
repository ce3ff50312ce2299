package auditsink

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/mcp-authd/mcp-authd/internal/auditformat"
	"github.com/mcp-authd/mcp-authd/internal/safehttp"
)

// otlp sends log records of OpenTelemetry (OTLP/HTTP 1, binary).
type otlp struct {
	writer
	Endpoint
	http *safehttp.Client
	now  func() time.Time
}

func newOTLP(w writer, e Endpoint, now func() time.Time) *otlp { return &otlp{w, e, e.client(), now} }

// scope is the instrumentation scope of the records.
const scope = "mcp-authd/audit"

// conventional maps our fields to OpenTelemetry names.
var conventional = map[string]string{
	"user": "user.id", "user_name": "user.name", "remote": "client.address", "tool": "gen_ai.tool.name",
	"user_agent": "user_agent.original", "error": "error.type",
}

// numbers maps severities to the log data model.
var numbers = map[auditformat.Severity]struct {
	number logs.SeverityNumber
	text   string
}{
	auditformat.Informational: {logs.SeverityNumber_SEVERITY_NUMBER_INFO, "INFO"},
	auditformat.Low:           {logs.SeverityNumber_SEVERITY_NUMBER_INFO2, "INFO2"},
	auditformat.Medium:        {logs.SeverityNumber_SEVERITY_NUMBER_WARN, "WARN"},
	auditformat.High:          {logs.SeverityNumber_SEVERITY_NUMBER_ERROR, "ERROR"},
}

// Deliver implements Sink.
func (o *otlp) Deliver(ctx context.Context, batch []auditformat.Entry) error {
	records := make([]*logs.LogRecord, len(batch))
	for i, e := range batch {
		records[i] = o.record(e)
	}
	// It has the wire form of a LogsService.Export request, whose package would add gRPC.
	body, err := proto.Marshal(&logs.LogsData{ResourceLogs: []*logs.ResourceLogs{{
		Resource: &resource.Resource{Attributes: []*common.KeyValue{
			attribute("service.name", "mcp-authd"), attribute("service.version", o.source.Version),
			attribute("mcp_authd.issuer", o.source.Issuer),
		}},
		ScopeLogs: []*logs.ScopeLogs{{
			Scope: &common.InstrumentationScope{Name: scope, Version: o.source.Version}, LogRecords: records,
		}},
	}}})
	if err != nil {
		return err
	}
	answer, err := o.post(ctx, o.http, http.Header{"Content-Type": {"application/x-protobuf"}}, body)
	if err != nil {
		return err
	}
	return partial(answer, len(batch))
}

// record returns an entry as a log record: its line as the body, and its fields as attributes.
func (o *otlp) record(e auditformat.Entry) *logs.LogRecord {
	level := numbers[e.Severity()]
	r := &logs.LogRecord{
		TimeUnixNano:         nanoseconds(e.At),
		ObservedTimeUnixNano: nanoseconds(o.now()),
		SeverityNumber:       level.number,
		SeverityText:         level.text,
		EventName:            e.Event,
		Body:                 text(string(o.line(e))),
		Attributes: []*common.KeyValue{
			{Key: "mcp_authd.index", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: e.Index}}},
			attribute("mcp_authd.leaf", e.Leaf.String()),
		},
	}
	for _, field := range slices.Sorted(maps.Keys(e.Fields)) {
		name := conventional[field]
		if name == "" {
			name = "mcp_authd." + field
		}
		r.Attributes = append(r.Attributes, attribute(name, auditformat.Visible(e.Fields[field])))
	}
	return r
}

func nanoseconds(at time.Time) uint64 { return uint64(max(at.UnixNano(), 0)) }

func attribute(name, value string) *common.KeyValue {
	return &common.KeyValue{Key: name, Value: text(value)}
}

func text(s string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}}
}

// partial parses ExportLogsServiceResponse. A collector that permanently refuses records says how
// many, and must not get them again.
func partial(answer []byte, sent int) error {
	var refused uint64
	var why string
	for number, value := range members(answer) {
		if number != 1 { // partial_success
			continue
		}
		for number, value := range members(value) {
			switch number {
			case 1: // rejected_log_records
				refused, _ = protowire.ConsumeVarint(value)
			case 2: // error_message
				why = string(value)
			}
		}
	}
	if refused == 0 {
		return nil
	}
	return &refusedError{entries: int64(min(refused, uint64(sent))), why: fmt.Sprintf("%.200q", why)}
}

// members returns the members of a message by number. The values have no tag, and texts and
// messages have no length.
func members(message []byte) func(yield func(protowire.Number, []byte) bool) {
	return func(yield func(protowire.Number, []byte) bool) {
		for len(message) > 0 {
			number, kind, n := protowire.ConsumeTag(message)
			if n < 0 {
				return
			}
			message = message[n:]
			if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
				return
			}
			value := message[:n]
			if kind == protowire.BytesType {
				value, _ = protowire.ConsumeBytes(value)
			}
			if !yield(number, value) {
				return
			}
			message = message[n:]
		}
	}
}

// Close implements Sink. A connection is used once.
func (o *otlp) Close() error { return nil }
