package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServeEndsWhenItCannotListen checks that a silent program behind the gateway does not delay
// the error of a server that cannot start.
func TestServeEndsWhenItCannotListen(t *testing.T) {
	program, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil,
		"listen: %[1]s\nissuer: http://%[1]s\nmanagement: {listen: \"\"}\ndata_dir: %[2]s\n"+
			"resources: [{uri: \"http://%[1]s/mcp\", scopes: [{name: mcp}], upstream: {command: [%[3]s, \"600\"]}}]\n",
		l.Addr(), filepath.Join(dir, "data"), program), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 1)
	go func() {
		code, _, errs := runs(t, []string{"HOME=" + dir}, "serve", "--config", file)
		ended <- fmt.Sprint(code, errs)
	}()
	select {
	case got := <-ended:
		if !strings.HasPrefix(got, "1") || !strings.Contains(got, "cannot listen on") {
			t.Errorf("got %s", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on, and serves nothing")
	}
}
