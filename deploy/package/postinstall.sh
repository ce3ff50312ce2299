#!/bin/sh
# After files are there: the user of the service, and a service that is updated is started again.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
  systemd-sysusers /usr/lib/sysusers.d/mcp-authd.conf
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart mcp-authd.service
  if ! systemctl is-enabled --quiet mcp-authd.service; then
    echo "Set issuer in /etc/mcp-authd/config.yaml, then: systemctl enable --now mcp-authd"
  fi
fi
