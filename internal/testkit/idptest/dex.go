package idptest

import (
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// dex returns the path of Dex. The module test/dex pins its version.
func dex(tb testing.TB) string {
	tb.Helper()
	return program.BuildOrSkip(tb, "test/dex", ".")
}
