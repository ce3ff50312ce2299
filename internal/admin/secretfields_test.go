package admin_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// TestSecretFields: what is a secret by its name is marked as one, so that no face shows it, or asks an
// assistant for it; and an operation whose answer has a secret says so (OB-10, OB-11).
func TestSecretFields(t *testing.T) {
	secret := regexp.MustCompile("password$|secret$|^token$")
	for _, v := range admin.All() {
		for _, of := range []reflect.Type{v.Input(), v.Output()} {
			for _, f := range reflect.VisibleFields(of) {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if f.Type.Kind() == reflect.String && secret.MatchString(name) && !admin.IsSecret(f) {
					t.Errorf("OB-10: %s: %s is not marked as a secret", v.Spec().Name, name)
				}
			}
		}
		marked := false
		for _, f := range reflect.VisibleFields(v.Output()) {
			marked = marked || admin.IsSecret(f)
		}
		if s := v.Spec(); s.Secret && !marked && s.Name != "proposal accept" { // whose answer is that of another one
			t.Errorf("OB-10: %s answers with a secret, and none is marked", s.Name)
		}
	}
}
