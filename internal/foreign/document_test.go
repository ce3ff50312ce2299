package foreign_test

import (
	"reflect"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/foreign"
	"github.com/mcp-authd/mcp-authd/metadata"
)

// TestOddMembers: RU-10 RFC 8414 3.2: a member of another type leaves the others readable.
func TestOddMembers(t *testing.T) {
	for _, tt := range []struct {
		odd  string
		want metadata.AuthorizationServer // besides its issuer
	}{
		{`"scopes_supported":["a",5,null,{"x":1},"b"]`,
			metadata.AuthorizationServer{ScopesSupported: metadata.Values{"a", "b"}}},
		{`"scopes_supported":"a b"`, metadata.AuthorizationServer{}},
		{`"scopes_supported":{"a":1}`, metadata.AuthorizationServer{}},
		{`"scopes_supported":null`, metadata.AuthorizationServer{}},
		{`"token_endpoint":5`, metadata.AuthorizationServer{}},
		{`"client_id_metadata_document_supported":"yes"`, metadata.AuthorizationServer{}},
		{`"protected_resource_scopes":["a"]`, metadata.AuthorizationServer{}},
		{`"protected_resource_scopes":{"r":5,"s":["a",1]}`, metadata.AuthorizationServer{
			ResourceScopes: map[string]metadata.Values{"r": nil, "s": {"a"}},
		}},
	} {
		for _, raw := range []string{
			`{` + tt.odd + `,"issuer":"https://as.example"}`, ` {"issuer":"https://as.example",` + tt.odd + `}`,
		} {
			var got metadata.AuthorizationServer
			want := tt.want
			want.Issuer = "https://as.example"
			if err := foreign.Metadata([]byte(raw), &got); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("RU-10 %s: got %+v, %v", raw, got, err)
			}
		}
	}
	for _, bad := range []string{``, `[]`, `"x"`, `5`, `{"issuer":`, `{} {}`} {
		var got metadata.AuthorizationServer
		if err := foreign.Metadata([]byte(bad), &got); err == nil {
			t.Errorf("%q is read as metadata", bad)
		}
	}
}
