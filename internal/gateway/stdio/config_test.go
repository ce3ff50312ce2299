package stdio

import (
	"slices"
	"testing"
)

// TestContainerEnvironment: RU-09. A command that starts a container finds its daemon as in a
// shell, but gets no registry credentials.
func TestContainerEnvironment(t *testing.T) {
	const host, secret = "DOCKER_HOST=unix:///run/user/1000/docker.sock", "DOCKER_AUTH_CONFIG={}"
	for _, command := range []string{"docker", "./run-in-docker.sh"} {
		c, err := Config{Command: []string{command}, environ: []string{host, secret}}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		if env := c.env(nil); !slices.Contains(env, host) || slices.Contains(env, secret) {
			t.Errorf("RU-09: %s has %q", command, env)
		}
	}
}
