package installation

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/gateway/stdio"
	"github.com/mcp-authd/mcp-authd/internal/process"
)

// walls lists commands that isolate their program from us, or run it as another user.
var walls = []string{
	"bwrap", "docker", "podman", "nerdctl", "firejail", "nsjail", "systemd-run", "runuser", "setpriv", "sudo", "su",
	"doas",
}

// Reach returns the secrets of this installation that the program of an MCP server could read. The
// secret key gives access to every account (SP-22, SP-24).
func (in *Installation) Reach(u *config.Upstream) []string {
	if len(u.Command) == 0 || slices.Contains(walls, filepath.Base(u.Command[0])) {
		return nil
	}
	account, err := stdio.LookUp(u.User)
	if err != nil {
		return nil // it cannot run
	}
	files := []string{in.KeyPath()}
	for what, path := range in.Config.SecretFiles() {
		if strings.HasPrefix(what, "secret_key") {
			files = append(files, path)
		}
	}
	if !in.Config.Postgres() {
		files = append(files, in.Config.SQLitePath())
	}
	slices.Sort(files)
	var out []string
	inside := u.Sandbox.Policy(u.Dir)
	for _, path := range slices.Compact(files) {
		if account.CanRead(path) && !inside.Keeps(path) {
			out = append(out, path)
		}
	}
	if inside.Keeps("/proc/1/environ") {
		return out // it cannot access other processes either
	}
	if !process.Hidden(int(account.UID)) {
		out = append(out, "this process")
	}
	return out
}

// ReachText describes them to the administrator.
func ReachText(r *config.Resource, Reach []string) (what, advice string) {
	return fmt.Sprintf(
			"the program of %s can read %s: its author, or a package that it installs, could act as any person here",
			r.URI, strings.Join(Reach, ", "),
		),
		"shut it in (upstream.sandbox, protect --sandbox), or start the server as root and have the program run as a user of its own (upstream.user, protect --run-as), or make the command one that shuts it in, such as bwrap or docker run -i"
}
