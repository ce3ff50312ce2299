package keychain

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"github.com/mcp-authd/mcp-authd/mcpclient"
)

// TestOpen: AU-02. A second start reads what the first has kept, and the files alone tell nothing.
func TestOpen(t *testing.T) {
	keyring.MockInit()
	dir := t.TempDir()
	first, err := Open("notes", dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Save(t.Context(), "k", []byte("the refresh token")); err != nil {
		t.Fatal(err)
	}
	again, err := Open("notes", dir)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := again.Load(t.Context(), "k"); err != nil || string(data) != "the refresh token" {
		t.Errorf("AU-02: got %q, %v", data, err)
	}
	sealed, err := os.ReadFile(filepath.Join(dir, "k.json"))
	if err != nil || bytes.Contains(sealed, []byte("refresh")) {
		t.Errorf("AU-02: the file has %q, %v", sealed, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other.json"), sealed, 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := again.Load(t.Context(), "other"); err != nil || data != nil {
		t.Errorf("CL-15: the data of another key is read: %q, %v", data, err)
	}
	if err := keyring.Delete("notes", entry); err != nil {
		t.Fatal(err)
	}
	fresh, err := Open("notes", dir)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := fresh.Load(t.Context(), "k"); err != nil || data != nil {
		t.Errorf("AU-02: a lost key: got %q, %v, want no sign-in", data, err)
	}
	if err := again.Delete(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if data, err := again.Load(t.Context(), "k"); err != nil || data != nil {
		t.Errorf("AU-02: deleted data: got %q, %v", data, err)
	}
}

// refused checks the error for a keychain that cannot be used.
func refused(t *testing.T, what string) {
	t.Helper()
	_, err := Open("notes", t.TempDir())
	var e *mcpclient.Error
	if !errors.As(err, &e) || !strings.Contains(e.Why, "keychain cannot be used") ||
		!strings.Contains(e.Advice, "Unlock the keychain") {
		t.Errorf("AU-01: %s: got %v %+v", what, err, e)
	}
}

// TestAbsent: AU-01. A computer without a keychain is an error that says what to do. The library
// cannot return from its mock, so the real one is tried in a process of its own.
func TestAbsent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system always has a keychain")
	}
	if os.Getenv("KEYCHAIN_TEST") != "" {
		refused(t, "absent")
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestAbsent$")
	cmd.Env = append(os.Environ(), "KEYCHAIN_TEST=1",
		"DBUS_SESSION_BUS_ADDRESS=unix:path="+filepath.Join(t.TempDir(), "none"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLocked: AU-01. So is a locked keychain, and one with a foreign entry.
func TestLocked(t *testing.T) {
	keyring.MockInitWithError(errors.New("locked collection"))
	refused(t, "locked")
	keyring.MockInit()
	if err := keyring.Set("notes", entry, "something else"); err != nil {
		t.Fatal(err)
	}
	refused(t, "a foreign entry")
}
