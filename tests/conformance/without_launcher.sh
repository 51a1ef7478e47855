#!/bin/sh
# without_launcher.sh MACHINES RANKS PROGRAM CASE: so many "machines" with so many ranks each that nobody of ours has
# started: RANK, WORLD_SIZE, MASTER_ADDR and so on, as torchrun sets them, and a secret that they find by themselves because
# all is on the loopback.
set -eu
machines=$1 ranks=$2
shift 2
HOME=$(mktemp -d)
trap 'rm -rf "$HOME"' EXIT
unset XDG_CACHE_HOME
export HOME WORLD_SIZE=$((machines * ranks)) LOCAL_WORLD_SIZE="$ranks"
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 10000))
pids=
rank=0
while [ "$rank" -lt "$WORLD_SIZE" ]; do
  RANK=$rank LOCAL_RANK=$((rank % ranks)) GROUP_RANK=$((rank / ranks)) timeout 200 "$@" &
  pids="$pids $!"
  rank=$((rank + 1))
done
code=0
for pid in $pids; do
  wait "$pid" || code=$?
done
exit "$code"
