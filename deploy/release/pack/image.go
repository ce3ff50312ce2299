package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const source = "https://github.com/mcp-authd/mcp-authd"

// artifact is what goreleaser's list has of one thing that it built.
type artifact struct {
	Path, Goos, Goarch, Type string
}

// metadata describes the release.
type metadata struct {
	Version, Commit string
}

// image writes the image of the Linux binaries in dist, for each architecture, as an OCI layout (image
// specification 1.1): in a directory, and in one file, whose checksum it adds to the list of checksums.
func image(dist string, at time.Time) error {
	var meta metadata
	var all []artifact
	if err := errors.Join(
		read(filepath.Join(dist, "metadata.json"), &meta), read(filepath.Join(dist, "artifacts.json"), &all),
	); err != nil {
		return err
	}
	labels := map[string]string{
		"org.opencontainers.image.title":       "mcp-authd",
		"org.opencontainers.image.description": "Sign-in for MCP servers: an OAuth 2.1 authorization server",
		"org.opencontainers.image.source":      source,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     meta.Version,
		"org.opencontainers.image.revision":    meta.Commit,
		"org.opencontainers.image.created":     at.Format(time.RFC3339),
	}
	below, err := base(at)
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	sort.Slice(all, func(i, j int) bool { return all[i].Goarch < all[j].Goarch })
	for _, a := range all {
		if a.Type != "Binary" || a.Goos != "linux" {
			continue
		}
		one, err := imageOf(filepath.Join(filepath.Dir(dist), a.Path), a.Goarch, below, labels, at)
		if err != nil {
			return fmt.Errorf("%s: %w", a.Path, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: one, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: a.Goarch}},
		})
	}
	index = mutate.Annotations(index, labels).(v1.ImageIndex)
	dir := filepath.Join(dist, "oci")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	err = to.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": meta.Version,
		"io.containerd.image.name":          "ghcr.io/mcp-authd/mcp-authd:" + meta.Version, // by "docker load"
	}))
	if err != nil {
		return err
	}
	name := "mcp-authd_" + meta.Version + "_oci.tar"
	if err := archive(dir, filepath.Join(dist, name), at); err != nil {
		return err
	}
	return addSum(dist, name)
}

func read(file string, to any) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, to)
}

// imageOf is the image for one architecture.
func imageOf(binary, arch string, below v1.Layer, labels map[string]string, at time.Time) (v1.Image, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	f := newFiles(at)
	if err := f.put("usr/bin/mcp-authd", 0o755, 0, program); err != nil {
		return nil, err
	}
	layer, err := f.layer()
	if err != nil {
		return nil, err
	}
	made := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	for _, l := range []v1.Layer{below, layer} {
		made, err = mutate.Append(made, mutate.Addendum{
			Layer: l, MediaType: types.OCILayer,
			History: v1.History{Created: v1.Time{Time: at}, CreatedBy: "deploy/release/pack"},
		})
		if err != nil {
			return nil, err
		}
	}
	config, err := made.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: at}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", nobody, nobody),
		Entrypoint: []string{"/usr/bin/mcp-authd"},
		Cmd:        []string{"serve"},
		Env: []string{
			"PATH=/usr/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", "MCP_AUTHD_DATA_DIR=/data",
			"MCP_AUTHD_LISTEN=:8414",
		},
		WorkingDir:   "/data",
		Volumes:      map[string]struct{}{"/data": {}},
		ExposedPorts: map[string]struct{}{"8414/tcp": {}},
		Labels:       labels,
		Healthcheck: &v1.HealthConfig{
			Test: []string{"CMD", "/usr/bin/mcp-authd", "healthcheck"}, Interval: 10 * time.Second, Timeout: 5 * time.Second,
			StartPeriod: 30 * time.Second,
		},
	}
	if made, err = mutate.ConfigFile(made, config); err != nil {
		return nil, err
	}
	return mutate.Annotations(made, labels).(v1.Image), nil
}

// archive writes the files of a directory into one tar file, in their order.
func archive(dir, to string, at time.Time) (err error) {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w := tar.NewWriter(out)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(b)), ModTime: at}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	})
	return errors.Join(err, w.Close())
}

// addSum adds a file to the checksums of the release.
func addSum(dist, name string) (err error) {
	f, err := os.Open(filepath.Join(dist, name))
	if err != nil {
		return err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return err
	}
	sums, err := os.OpenFile(filepath.Join(dist, "SHA256SUMS"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sums.Close()) }()
	_, err = fmt.Fprintf(sums, "%x  %s\n", hash.Sum(nil), name)
	return err
}
