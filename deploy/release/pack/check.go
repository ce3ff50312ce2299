package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// check compares each digest and size of a layout with the content, finds the image of an architecture,
// refuses an image that runs as root, and writes its binary to a file.
func check(dir, arch, binary string) error {
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return err
	}
	if err := validate.Index(outer); err != nil {
		return err
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		return err
	}
	if len(manifest.Manifests) != 1 {
		return fmt.Errorf("the layout has %d images", len(manifest.Manifests))
	}
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		return err
	}
	if manifest, err = index.IndexManifest(); err != nil {
		return err
	}
	for _, m := range manifest.Manifests {
		if m.Platform == nil || m.Platform.OS != "linux" || m.Platform.Architecture != arch {
			continue
		}
		image, err := index.Image(m.Digest)
		if err != nil {
			return err
		}
		return take(image, binary)
	}
	return fmt.Errorf("the image for linux/%s is missing", arch)
}

// take writes the binary of an image to a file.
func take(image v1.Image, to string) (err error) {
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	if user := config.Config.User; user != "65532:65532" {
		return fmt.Errorf("it runs as user %q", user)
	}
	contents := mutate.Extract(image)
	defer contents.Close()
	found := map[string]bool{}
	for r := tar.NewReader(contents); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		found[h.Name] = true
		if h.Name != "usr/bin/mcp-authd" {
			continue
		}
		out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, r)
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
	for _, name := range []string{
		"usr/bin/mcp-authd", "etc/ssl/certs/ca-certificates.crt", "usr/share/zoneinfo/Europe/Berlin", "etc/passwd",
	} {
		if !found[name] {
			return fmt.Errorf("it has no %s", name)
		}
	}
	return nil
}
