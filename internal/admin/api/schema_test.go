package api_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestTwoTypesOfOneName checks that two structs with the same name do not share a schema, because
// callers would confuse them (OB-10).
func TestTwoTypesOfOneName(t *testing.T) {
	type both struct {
		One   admin.Client   `json:"one"`
		Other storage.Client `json:"other"`
	}
	defer func() {
		said, _ := recover().(string)
		if !strings.Contains(said, "admin.Client and storage.Client would have one name") {
			t.Errorf("got %q, want a panic that names both types", said)
		}
	}()
	api.Schema(reflect.TypeFor[both](), false)
}
