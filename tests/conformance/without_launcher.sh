#!/bin/sh
# without_launcher.sh LAYOUT PROGRAM WORDS...: ranks that nobody of ours has started: RANK, WORLD_SIZE, MASTER_ADDR and so
# on, as torchrun sets them, and a secret that they find by themselves because all is on the loopback. LAYOUT is how many
# of them each "machine" has: 2+1 is two on the first and one on the second, which is this machine, too.
set -eu
layout=$1
shift
HOME=$(mktemp -d)
trap 'rm -rf "$HOME"' EXIT
unset XDG_CACHE_HOME
# shellcheck disable=SC2004 # it is a sum, not a number
WORLD_SIZE=$(($layout))
export HOME WORLD_SIZE MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 10000))
pids=
rank=0
machine=0
for ranks in $(echo "$layout" | tr + ' '); do
  local=0
  while [ "$local" -lt "$ranks" ]; do
    RANK=$rank LOCAL_RANK=$local LOCAL_WORLD_SIZE=$ranks GROUP_RANK=$machine timeout 200 "$@" &
    pids="$pids $!"
    rank=$((rank + 1))
    local=$((local + 1))
  done
  machine=$((machine + 1))
done
code=0
for pid in $pids; do
  wait "$pid" || code=$?
done
exit "$code"
