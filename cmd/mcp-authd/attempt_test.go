package main

import (
	"io"
	"net/http"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// referred URL VAR: the page at the URL shows the person a reference, which VAR is set to.
func scriptReferred(ts *testscript.TestScript, _ bool, args []string) {
	req, err := http.NewRequest(http.MethodGet, args[0], nil)
	ts.Check(err)
	req.Header.Set("Accept", "text/html")
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	ts.Check(err)
	reference := resp.Header.Get("X-Request-Id")
	if reference == "" || !strings.Contains(string(page), reference) {
		ts.Fatalf("the page does not show the reference %q: %s", reference, page)
	}
	ts.Setenv(args[1], reference)
}
