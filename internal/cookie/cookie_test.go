package cookie

import "testing"

func TestName(t *testing.T) {
	seen := map[string]string{}
	for _, issuer := range []string{
		"http://127.0.0.1:8414", "http://127.0.0.1:8415", "http://localhost:8414",
		"https://example.com", "https://example.com/a", "https://example.com/b",
	} {
		name := Name(issuer, "session")
		if other, ok := seen[name]; ok {
			t.Errorf("RU-02 %s and %s share the cookie %s", issuer, other, name)
		}
		if seen[name] = issuer; !Ours(name) || !Ours(Shared(issuer, "session")) {
			t.Errorf("%s does not pass for ours", name)
		}
	}
	if Ours("sid") || Ours("__Host-sid") {
		t.Error("a cookie of another program passes for ours")
	}
}
