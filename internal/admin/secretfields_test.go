package admin_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// TestSecretFields checks that fields with the name of a secret are marked as secret, so that no
// front end shows them and no assistant is asked for them. An operation whose output contains a
// secret must say so (OB-10, OB-11).
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
		if s := v.Spec(); s.Secret && !marked && s.Name != "proposal accept" { // it wraps another operation
			t.Errorf("OB-10: %s answers with a secret but marks no field", s.Name)
		}
	}
}
