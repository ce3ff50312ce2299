package dcr_test

import (
	"testing"

	"github.com/mcp-authd/mcp-authd/dcr"
)

func BenchmarkRegister(b *testing.B) {
	r := newRig(b, func(c *dcr.Config) { c.Limits = dcr.Limits{PerMinute: 1e12, Burst: 1e9}; c.Audit = nil })
	for b.Loop() {
		if w := r.send("POST", `{`+loopback+`,"client_name":"bench"}`); w.Code != 201 {
			b.Fatal(w.Code)
		}
	}
	if n := r.store.size(b); n != 0 {
		b.Fatalf("%d rows", n)
	}
}

func BenchmarkResolve(b *testing.B) {
	r := newRig(b)
	id := r.register(b,
		`{`+loopback+`,"client_name":"bench","token_endpoint_auth_method":"client_secret_basic"}`)["client_id"].(string)
	run := func(name string, before func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				before()
				if _, err := r.Client(b.Context(), id); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("kept", func() {})
	run("sealed", func() { r.Forget(id) })
}
