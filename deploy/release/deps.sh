#!/usr/bin/env bash
# Installs what the tests of a release need and this machine lacks, from Debian packages: readers of
# packages, linters, systemd with its containers, and an emulator of the other processor. "patroni" is for
# the parts of deploy/postgresql in their place. test/install-deps.sh, before it, installs what other tests
# need, too.
set -uo pipefail
have() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ]; }
lacking_release() {
  have rpm || echo rpm
  have lintian || echo lintian
  have systemd-analyze || echo systemd
  have systemd-nspawn || echo systemd-container
  have man || echo man-db
  have qemu-aarch64-static && have qemu-x86_64-static || echo qemu-user-static
}
lacking_patroni() {
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || echo postgresql
  have pgbouncer || echo pgbouncer
  have promtool || echo prometheus
  have patronictl || echo patroni
  have etcd || echo etcd-server
  have nginx || echo nginx-light
}
lacking=lacking_${1:-release}
declare -F "$lacking" >/dev/null || { echo "usage: $0 [release|patroni]" >&2; exit 2; }
missing=($($lacking))
if ((${#missing[@]})) && [ "$(id -u)" = 0 ] && have apt-get; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >/dev/null &&
    apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}" >/dev/null
  missing=($($lacking))
fi
if ((${#missing[@]})); then
  echo "missing: ${missing[*]} (on Debian or Ubuntu: sudo apt-get install ${missing[*]})" >&2
  exit 1
fi
