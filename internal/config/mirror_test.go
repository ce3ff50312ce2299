package config

import (
	"reflect"
	"testing"
)

// TestConnectorIsWhole checks that each field of thirdparty.Connector can be configured. The two
// types are separate because a file has masked secrets, files with secrets, days, and networks as
// text.
func TestConnectorIsWhole(t *testing.T) {
	var full Connector
	fill(reflect.ValueOf(&full).Elem())
	full.Networks = []string{"10.0.0.0/8"}
	out := reflect.ValueOf(full.connector())
	for i := range out.NumField() {
		if out.Field(i).IsZero() {
			t.Errorf("%s cannot be configured", out.Type().Field(i).Name)
		}
	}
}

// TestConnectorOfIsWhole checks that a provider survives the conversion to a configuration and
// back.
func TestConnectorOfIsWhole(t *testing.T) {
	var full Connector
	fill(reflect.ValueOf(&full).Elem())
	full.Networks = []string{"10.0.0.0/8"}
	want := full.connector()
	if got := ConnectorOf(want).connector(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// fill sets every field.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"x": "x"}))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}

// TestTrustIsWhole checks that each rule of storage.TrustEntry can be configured. Embedded keys are
// an exception: only the command line stores them.
func TestTrustIsWhole(t *testing.T) {
	var full Trust
	fill(reflect.ValueOf(&full).Elem())
	out := full.entry()
	rules := reflect.ValueOf(out.TrustRules)
	for i := range rules.NumField() {
		if name := rules.Type().Field(i).Name; rules.Field(i).IsZero() && name != "JWKS" {
			t.Errorf("%s cannot be configured", name)
		}
	}
	if out.ID == "" || out.Kind == "" || out.Issuer == "" {
		t.Errorf("got %+v", out)
	}
}
