// Package fieldtext parses text from environment variables, queries and forms into fields of Go
// structs.
package fieldtext

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
)

// ErrKind means that Set does not parse fields of this type.
var ErrKind = errors.New("cannot be read from a text")

// FormError is the error of a field that parses text itself.
type FormError struct{ Err error }

// Error implements error.
func (e *FormError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the field.
func (e *FormError) Unwrap() error { return e.Err }

// Set parses text into a field that is an encoding.TextUnmarshaler, string, bool, int, int64 or
// float64.
func Set(field reflect.Value, text string) error {
	if u, ok := field.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(text)); err != nil {
			return &FormError{err}
		}
		return nil
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is not true or false", text)
		}
		field.SetBool(b)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, field.Type().Bits())
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		field.SetInt(n)
	case reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		field.SetFloat(n)
	default:
		return ErrKind
	}
	return nil
}
