#!/usr/bin/env bash
# Builds the site of the manual into the folder that is named, dist/docs without one. Hugo is a tool of the
# module here; PUBLIC_URL is where the site is served (links within it are relative and need none).
set -euo pipefail
cd "$(dirname "$0")/../.."
go=${GO:-go}
out=$(realpath -m "${1:-dist/docs}")
public=${PUBLIC_URL:-https://mcp-authd.github.io/mcp-authd/}
export CGO_ENABLED=0 # Hugo needs no C for what it does here
hugo=$("$go" -C docs/site tool -n hugo)
HUGO_PARAMS_PUBLIC=$public HUGO_CACHEDIR="$PWD/.cache/hugo" "$hugo" --source docs/site --destination "$out" \
  --cleanDestinationDir --noBuildLock --quiet --panicOnWarning --minify
"$go" run -C docs/site . "$out" "$PWD" "$public" https://github.com/mcp-authd/mcp-authd
