package policy

import (
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func TestDemandProofs(t *testing.T) {
	bound := storage.Resource{
		URI: "https://a.example/mcp", Aliases: []string{"https://a.example/other"}, DPoP: storage.DPoPRequired,
	}
	free := storage.Resource{URI: "https://c.example/mcp"}
	for name, tt := range map[string]struct {
		resources []storage.Resource
		some, all bool
	}{
		"no resources":   {},
		"one without":    {[]storage.Resource{free}, false, false},
		"with its alias": {[]storage.Resource{bound}, true, true},
		"one of each":    {[]storage.Resource{bound, free}, true, false},
	} {
		c, err := NewCatalogue(tt.resources)
		if err != nil {
			t.Fatal(err)
		}
		if some, all := c.DemandProofs(); some != tt.some || all != tt.all {
			t.Errorf("AS-213 %s: got %v, %v", name, some, all)
		}
	}
}
