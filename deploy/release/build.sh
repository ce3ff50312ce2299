#!/usr/bin/env bash
# Builds what a release consists of into dist/: archives, packages, their SBOMs, the Homebrew formula,
# the OCI image, the Helm charts and the checksums. It publishes and signs nothing. Where HEAD has no
# tag, it builds what would be released of it (a snapshot). Two runs of one commit make the same bytes.
set -euo pipefail
cd "$(dirname "$0")/../.."
go=${GO:-go}
# goreleaser, syft, helm and go-containerregistry are in modules of their own, each at its version.
goreleaser=$("$go" -C deploy/release/goreleaser tool -n goreleaser)
# It reads the commit only where it knows a remote; that is always the public one.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url
export GIT_CONFIG_VALUE_0=https://github.com/mcp-authd/mcp-authd.git
mode=--snapshot
if git describe --exact-match --tags HEAD >/dev/null 2>&1; then mode=--skip=publish; fi
"$goreleaser" release --clean "$mode" "$@"
seconds=$(git log -1 --format=%ct)
pack=$PWD/.cache/release/pack
"$go" build -C deploy/release/pack -o "$pack" .
"$pack" image "$PWD/dist" "$seconds"
helm=$("$go" -C deploy/helm/tools tool -n helm)
"$pack" charts "$PWD/dist" "$seconds" "$helm" deploy/helm/mcp-authd deploy/helm/mcp-authd-protect
