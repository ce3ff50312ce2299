package storagetest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Hooks calls each method of an empty store that returns an error. Each must pass the hook exactly
// once, by its name, whether it fails before it changes anything or its reply is lost, and must
// return the hook's error.
func Hooks(t *testing.T, store storage.Store) {
	for _, carriedOut := range []bool{false, true} {
		var passed []string
		remove := store.Hook(func(_ context.Context, verb string, run func() error) error {
			passed = append(passed, verb)
			if carriedOut {
				_ = run()
			}
			return ErrInjected
		})
		verbs := 0
		for i, s := 0, reflect.TypeFor[storage.Store](); i < s.NumMethod(); i++ {
			m := s.Method(i)
			if m.Name == "Close" || !returnsError(m.Type) {
				continue
			}
			verbs++
			passed = nil
			err := callFilled(t, reflect.ValueOf(store).MethodByName(m.Name))
			if len(passed) != 1 || passed[0] != m.Name {
				t.Errorf("%s, carried out %v: passed the hook as %q, want once by its name", m.Name, carriedOut, passed)
			}
			if !errors.Is(err, ErrInjected) {
				t.Errorf("%s, carried out %v: got %v, want the hook's error", m.Name, carriedOut, err)
			}
		}
		if verbs < 200 {
			t.Errorf("only %d methods were called", verbs)
		}
		remove()
		passed = nil
		if _, err := store.ListResources(t.Context()); err != nil || passed != nil {
			t.Errorf("without the hook: got %v, which passed it as %q", err, passed)
		}
	}
}

func returnsError(signature reflect.Type) bool {
	n := signature.NumOut()
	return n > 0 && signature.Out(n-1) == reflect.TypeFor[error]()
}

// callFilled calls a method with arguments that no verb refuses before it begins.
func callFilled(t *testing.T, method reflect.Value) error {
	f := filler{time.Unix(1_700_000_000, 0)}
	args := []reflect.Value{reflect.ValueOf(t.Context())}
	for i := 1; i < method.Type().NumIn(); i++ {
		args = append(args, f.value(method.Type().In(i)))
	}
	out := method.Call(args)
	err, _ := out[len(out)-1].Interface().(error)
	return err
}

// filler makes values that are not empty. Each time is later than the one before, so that records
// expire after they were created.
type filler struct{ last time.Time }

func (f *filler) value(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint('1') // some bytes are JSON
	case reflect.String:
		v.SetString("x")
	case reflect.Slice:
		v.Set(reflect.Append(v, f.value(t.Elem())))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(f.value(t.Key()), f.value(t.Elem()))
	case reflect.Pointer:
		v.Set(f.value(t.Elem()).Addr())
	case reflect.Func:
		v.Set(reflect.MakeFunc(t, func([]reflect.Value) (out []reflect.Value) {
			for i := range t.NumOut() {
				out = append(out, reflect.Zero(t.Out(i)))
			}
			return out
		}))
	case reflect.Struct:
		f.fill(v)
	}
	return v
}

func (f *filler) fill(v reflect.Value) {
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			v.Field(i).Set(f.value(v.Type().Field(i).Type))
		}
	}
	switch r := v.Addr().Interface().(type) {
	case *time.Time:
		f.last = f.last.Add(time.Hour)
		*r = f.last
	case *storage.Selection:
		*r = storage.Selection{UserID: "x"} // not all of it can be selected together
	case *storage.AssertionGrant:
		r.Grant.UserID = "" // it may have a person
	case *storage.ProgramKey:
		r.Client.Source, r.Client.GrantTypes = storage.SourcePerson, nil
	}
}
