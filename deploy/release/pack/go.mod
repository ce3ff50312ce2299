// Pack makes what goreleaser does not: the OCI image, the charts, and SBOMs that are the same each time. It is
// a program that releases run, never a part of mcp-authd: hence a module of its own.
module github.com/mcp-authd/mcp-authd/deploy/release/pack

go 1.26.0

tool github.com/google/go-containerregistry/cmd/registry // to which tests push

require (
	github.com/google/go-containerregistry v0.22.0
	golang.org/x/crypto/x509roots/fallback v0.0.0-20261030153154-30a33513ff6d
)

require (
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	golang.org/x/sync v0.22.0 // indirect
)
