package signin

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
)

// OpenBrowser opens a URL with the desktop's opener. It uses no shell, and opens only URLs that are
// safe for a browser (MCP Security Best Practices). Nil does not mean that the user sees the page.
func OpenBrowser(ctx context.Context, raw string) error {
	if err := discovery.CheckURL(raw); err != nil {
		return err
	}
	name, args := "xdg-open", []string{raw}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", raw}
	}
	// The opener may become the browser, which must outlive the command.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), name, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait()
	return nil
}

// ErrNoBrowser means that this computer has no desktop to open a browser on.
var ErrNoBrowser = errors.New("signin: no desktop")

// Desktop returns ErrNoBrowser if no browser can be opened on this computer.
func Desktop() error {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return nil
	}
	for _, name := range []string{"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} {
		if os.Getenv(name) != "" {
			return nil
		}
	}
	return ErrNoBrowser
}
