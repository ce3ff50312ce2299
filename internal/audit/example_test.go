package audit_test

import (
	"context"
	"log/slog"
	"os"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/request"
)

// A recorded event contains the attributes of its request.
func Example() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	recorder := audit.New(log)
	ctx := request.Without(audit.Remote("192.0.2.7:49152")).Within(context.Background())
	recorder.Record(ctx, audit.LoginSucceeded, audit.Person("usr_1", "alice"))
	// Output:
	// level=INFO msg=login.succeeded event=login.succeeded user=usr_1 user_name=alice remote=192.0.2.7
}
