package otelmcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/otelmcp"
)

func ExampleNew() {
	spans := tracetest.NewInMemoryExporter() // a program uses an exporter to its collector
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans))
	guard, err := mcpresource.New(mcpresource.Config{
		Resource:             resource,
		AuthorizationServers: []string{"https://auth.example.com"},
		Validator:            mcpresource.ValidatorFunc(caller),
		Tracer:               otelmcp.New(provider, otelmcp.Options{}),
	})
	if err != nil {
		panic(err)
	}
	h := guard.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, resource, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}`))
	r.Header.Set("Authorization", "Bearer token")
	h.ServeHTTP(httptest.NewRecorder(), r)
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name)
	}
	// Output:
	// guard
	// tools/call add
}
