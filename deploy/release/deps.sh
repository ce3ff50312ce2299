#!/usr/bin/env bash
# Installs what the tests of a release need and this machine lacks, from Debian packages: readers of
# packages, linters, systemd with its containers, an emulator of the other processor, and the parts of
# deploy/postgresql. test/install-deps.sh, before it, installs what other tests need, too.
set -uo pipefail
have() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ]; }
lacking() {
  have rpm || echo rpm
  have lintian || echo lintian
  have systemd-analyze || echo systemd
  have systemd-nspawn || echo systemd-container
  have man || echo man-db
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || echo postgresql
  have pgbouncer || echo pgbouncer
  have promtool || echo prometheus
  have patronictl || echo patroni
  have etcd || echo etcd-server
  have nginx || echo nginx-light
  have qemu-aarch64-static && have qemu-x86_64-static || echo qemu-user-static
}
missing=($(lacking))
if ((${#missing[@]})) && [ "$(id -u)" = 0 ] && have apt-get; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >/dev/null &&
    apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}" >/dev/null
  missing=($(lacking))
fi
if ((${#missing[@]})); then
  echo "missing: ${missing[*]} (on Debian or Ubuntu: sudo apt-get install ${missing[*]})" >&2
  exit 1
fi
