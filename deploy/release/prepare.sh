#!/usr/bin/env bash
# What a release has that the compiler does not make: manual pages and completions, of the commands.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=.cache/release
rm -rf "$out/man" "$out/completions"
mkdir -p "$out/man" "$out/completions"

export CGO_ENABLED=0
bin=$out/mcp-authd
"${GO:-go}" build -trimpath -ldflags "-s -w" -o "$bin" ./cmd/mcp-authd
"$bin" man "$out/man"
"$bin" completion bash >"$out/completions/mcp-authd.bash"
"$bin" completion zsh >"$out/completions/_mcp-authd"
"$bin" completion fish >"$out/completions/mcp-authd.fish"
"$bin" completion powershell >"$out/completions/mcp-authd.ps1"

# Packages have them packed, without the time of day.
gzip -9nk "$out"/man/*.1
gzip -9nc CHANGELOG.md >"$out/changelog.gz"

# An apk keeps the times of its scripts: that of the commit.
rm -rf "$out/scripts"
mkdir "$out/scripts"
cp deploy/package/*.sh "$out/scripts"
touch -d "@$(git log -1 --format=%ct)" "$out"/scripts/*
