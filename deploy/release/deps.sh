#!/usr/bin/env bash
# Installs what the tests of a release need and this machine lacks, from Debian packages: readers of
# packages, linters, systemd's own look at a unit.
set -uo pipefail
lacking() {
  command -v rpm >/dev/null || echo rpm
  command -v lintian >/dev/null || echo lintian
  command -v systemd-analyze >/dev/null || echo systemd
  command -v man >/dev/null || echo man-db
}
missing=($(lacking))
if ((${#missing[@]})) && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
  missing=($(lacking))
fi
if ((${#missing[@]})); then
  echo "missing: ${missing[*]} (on Debian or Ubuntu: sudo apt-get install ${missing[*]})" >&2
  exit 1
fi
