#!/bin/sh
# Before files go. An update (deb: "upgrade", rpm: 1 or more are left) does not stop the service.
set -e
case "${1:-0}" in
  upgrade | [1-9]*) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
  systemctl disable --now mcp-authd.service
fi
