package gateway

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// liar starts a server that answers each request with the raw bytes that raw returns, and then
// closes the connection. front is in front of it.
func liar(t *testing.T, c Config, raw func(r *http.Request) string) *httptest.Server {
	t.Helper()
	c.Shows = rulesOf(t, &mcpresource.Rules{Deny: []string{"drop"}})
	return front(t, c, func(w http.ResponseWriter, r *http.Request) {
		answer := raw(r)
		io.Copy(io.Discard, r.Body) // or closing the connection looks like a reset
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(buffered, answer)
		buffered.Flush()
	})
}

// ask sends a request and returns the response, its body and the error that ended it.
func ask(t *testing.T, method, url, body string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Range", "bytes=60-")
	req.Header.Set("If-Range", `"1"`)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return &http.Response{Header: http.Header{}}, "", err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return resp, string(got), err
}

// TestListsOfALiar checks responses whose headers contradict the body or each other. Anything that
// a client could read differently from the gateway must not pass.
func TestListsOfALiar(t *testing.T) {
	event := "data: " + toolsList + "\n\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, toolsList)
	z.Close()
	ok := func(body string, headers ...string) string {
		return "HTTP/1.1 200 OK\r\n" + strings.Join(headers, "\r\n") + "\r\nConnection: close\r\n\r\n" + body
	}
	const typed = "Content-Type: application/json"
	long, short := len(toolsList)+50, len(toolsList)-5
	for _, c := range []struct {
		name, answer string
		status       int    // 0: the connection breaks
		kind         string // the Content-Type that the client gets
	}{
		{"two encodings", ok(packed.String(), typed, "Content-Encoding: identity", "Content-Encoding: gzip"), 502, ""},
		{"two encodings in one", ok(packed.String(), typed, "Content-Encoding: identity, gzip"), 502, ""},
		{"an encoding in capitals", ok(packed.String(), typed, "Content-Encoding: GZIP"), 502, ""},
		{"an unknown encoding", ok(toolsList, typed, "Content-Encoding: x-plain"), 502, ""},
		{"compressed, and silent about it", ok(packed.String(), typed), 0, ""},
		{"a compressed transfer", ok(packed.String(), typed, "Transfer-Encoding: gzip, chunked"), 502, ""},
		{"two types", ok(event, typed, "Content-Type: text/event-stream"), 502, ""},
		{"two types in one", ok(event, typed+", text/event-stream"), 502, ""},
		{"a type that begins as another", ok(event, "Content-Type: text/event-stream-x"), 502, ""},
		{"no type", ok(event, "Content-Type: /"), 502, ""},
		{"UTF-7", ok(toolsList, typed+"; charset=utf-7"), 502, ""},
		{"two charsets", ok(toolsList, typed+"; charset=utf-8; charset=utf-16"), 502, ""},
		{"a part", strings.Replace(ok(toolsList[60:], typed), "200 OK", "206 Partial Content", 1), 502, ""},
		{"a part of the whole", ok(toolsList[60:], typed, "Content-Range: bytes 60-99/100"), 502, ""},
		{"two lengths", ok(toolsList, typed, "Content-Length: 5", "Content-Length: 6"), 502, ""},
		{"more than it sends", ok(toolsList, typed, fmt.Sprint("Content-Length: ", long)), 0, ""},
		{"less than it sends", ok(toolsList, typed, fmt.Sprint("Content-Length: ", short)), 0, ""},
		{"a name of a stream beside the type", ok(toolsList, typed+`; x="text/event-stream"`), 200, "application/json"},
		{
			"another type beside that of a stream", ok(event, `Content-Type: Text/Event-Stream; x="application/json"`),
			200, "text/event-stream",
		},
		{"its charset in capitals", ok(toolsList, typed+"; Charset=UTF-8"), 200, "application/json; charset=utf-8"},
		{"the encoding of what has none", ok(toolsList, typed, "Content-Encoding: Identity"), 200, "application/json"},
	} {
		t.Run("RS-218 "+c.name, func(t *testing.T) {
			g := liar(t, Config{}, func(r *http.Request) string {
				if r.Header.Get("Range") != "" || r.Header.Get("If-Range") != "" {
					t.Error("RS-218: the MCP server is asked for a part of a list")
				}
				return c.answer
			})
			resp, body, err := ask(t, http.MethodPost, g.URL, listCall)
			if strings.Contains(body, "drop") || strings.Contains(body, packed.String()) {
				t.Errorf("got %q", body)
			}
			if (err != nil) != (c.status == 0) || c.status != 0 && resp.StatusCode != c.status {
				t.Errorf("got %d, %v, want %d", resp.StatusCode, err, c.status)
			}
			if kind := resp.Header.Get("Content-Type"); c.kind != "" && kind != c.kind {
				t.Errorf("the client sees the type %q, want %q", kind, c.kind)
			}
		})
	}
}

// TestStreamOfAnotherType checks that responses to GET are filtered as a stream whatever their
// type, because clients ignore the type.
func TestStreamOfAnotherType(t *testing.T) {
	for _, kind := range []string{"text/plain", "application/json", "", "application/octet-stream"} {
		g := liar(t, Config{}, func(*http.Request) string {
			return "HTTP/1.1 200 OK\r\nContent-Type: " + kind + "\r\nConnection: close\r\n\r\n" +
				"data: " + toolsList + "\n\n"
		})
		_, body, err := ask(t, http.MethodGet, g.URL, "")
		if want := "data: " + shownList + "\n\n"; body != want || err != nil {
			t.Errorf("RS-218 a stream of type %q: got %q, %v, want %q", kind, body, err, want)
		}
	}
	g := liar(t, Config{}, func(*http.Request) string {
		return "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: what?\r\nContent-Length: 2\r\n\r\nno"
	})
	if resp, body, err := ask(t, http.MethodGet, g.URL, ""); resp.StatusCode != 405 || body != "no" || err != nil {
		t.Errorf("without a stream: got %d %q, %v", resp.StatusCode, body, err)
	}
}

// TestListsInOtherAnswers: RS-218, RS-219. If changed tools are held, every response is filtered:
// clients that match by id accept a list in the response to any request.
func TestListsInOtherAnswers(t *testing.T) {
	for _, watched := range []bool{false, true} {
		for kind, form := range map[string]string{"application/json": "%s", "text/event-stream": "data: %s\n\n"} {
			g := liar(t, Config{Watched: watched}, func(*http.Request) string {
				return "HTTP/1.1 200 OK\r\nContent-Type: " + kind + "\r\nConnection: close\r\n\r\n" +
					fmt.Sprintf(form, toolsList)
			})
			want := fmt.Sprintf(form, toolsList)
			if watched {
				want = fmt.Sprintf(form, shownList)
			}
			if _, body, err := ask(t, http.MethodPost, g.URL, ping); body != want || err != nil {
				t.Errorf("RS-219 watched %v, %s: got %q, %v, want %q", watched, kind, body, err, want)
			}
		}
	}
}

// TestEndlessList: RS-218. An endless list whose entries are all hidden ends when its client
// leaves.
func TestEndlessList(t *testing.T) {
	ended := make(chan struct{})
	g := front(t, Config{Shows: rulesOf(t, &mcpresource.Rules{Deny: []string{"drop"}})},
		func(w http.ResponseWriter, _ *http.Request) {
			defer close(ended)
			w.Header().Set("Content-Type", "application/json")
			many := strings.Repeat(`{"name":"drop"},`, 1000)
			for _, err := io.WriteString(w, `{"result":{"tools":[`); err == nil; {
				_, err = io.WriteString(w, many)
			}
		})
	resp, err := http.Post(g.URL, "application/json", strings.NewReader(listCall))
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 20)
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != `{"result":{"tools":[` {
		t.Errorf("RS-218: got %q, %v", first, err)
	}
	resp.Body.Close()
	<-ended // otherwise the test does not end
}
