package fieldtext

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"
)

type word string

func TestSet(t *testing.T) {
	var v struct {
		S word
		B bool
		I int
		L int64
		F float64
		T time.Time
		X []string
	}
	fields := reflect.ValueOf(&v).Elem()
	for _, tt := range []struct{ field, text, want, err string }{
		{"S", "a b", "a b", ""},
		{"B", "true", "true", ""},
		{"B", "yes", "", `"yes" is not true or false`},
		{"I", "-7", "-7", ""},
		{"I", "7 ", "", `"7 " is not a number`},
		{"L", fmt.Sprint(math.MaxInt64), fmt.Sprint(math.MaxInt64), ""},
		{"L", "9223372036854775808", "", `"9223372036854775808" is not a number`},
		{"F", "0.5", "0.5", ""},
		{"F", "half", "", `"half" is not a number`},
		{"T", "2026-11-23T15:02:00Z", "2026-11-23 15:02:00 +0000 UTC", ""},
		{"X", "a", "", ErrKind.Error()},
	} {
		fields.SetZero()
		field := fields.FieldByName(tt.field)
		err := Set(field, tt.text)
		if tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%s %q: got %v, want %s", tt.field, tt.text, err, tt.err)
			}
			continue
		}
		if got := fmt.Sprint(field.Interface()); err != nil || got != tt.want {
			t.Errorf("%s %q: got %s, %v, want %s", tt.field, tt.text, got, err, tt.want)
		}
	}
	form := (*FormError)(nil)
	if err := Set(fields.FieldByName("T"), "today"); !errors.As(err, &form) {
		t.Errorf("got %v, want a *FormError", err)
	}
}
