#!/usr/bin/env bash
# sbom.sh ARCHIVE DOCUMENT SECONDS: lists what is in an archive, as SPDX; the time of the list is SECONDS.
set -euo pipefail
archive=$(realpath "$1") document=$(realpath "$2") seconds=$3
cd "$(dirname "$0")"
raw=$(mktemp)
trap 'rm -f "$raw"' EXIT
syft=$("${GO:-go}" -C syft tool -n syft)
SYFT_CHECK_FOR_APP_UPDATE=false "$syft" scan "file:$archive" --quiet \
  --source-name "$(basename "$archive")" --output "spdx-json=$raw"
"${GO:-go}" run -C pack . sbom "$raw" "$document" "$seconds"
