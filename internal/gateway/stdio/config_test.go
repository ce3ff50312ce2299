package stdio

import (
	"slices"
	"testing"
)

// RU-09: a command that starts a container finds its daemon as in a shell; other programs do not learn where it is.
func TestContainerEnvironment(t *testing.T) {
	const host, secret = "DOCKER_HOST=unix:///run/user/1000/docker.sock", "DOCKER_AUTH_CONFIG={}"
	for command, want := range map[string]bool{
		"docker": true, "/usr/bin/podman": true, "docker.exe": true, "node": false, "docker-compose": false,
	} {
		c, err := Config{Command: []string{command}, environ: []string{host, secret}}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		env := c.env(nil)
		if slices.Contains(env, host) != want || slices.Contains(env, secret) {
			t.Errorf("RU-09: %s has %q, want DOCKER_HOST: %v", command, env, want)
		}
	}
}
