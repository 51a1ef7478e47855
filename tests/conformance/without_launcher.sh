#!/bin/sh
# without_launcher.sh RANK CASE: two ranks on "two machines" that nobody of ours has started: RANK, WORLD_SIZE, MASTER_ADDR
# and MASTER_PORT, as torchrun sets them, and a secret that they find by themselves because all is on the loopback.
set -eu
HOME=$(mktemp -d)
trap 'rm -rf "$HOME"' EXIT
port=$((20000 + $$ % 10000))
unset XDG_CACHE_HOME
export HOME WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
RANK=1 GROUP_RANK=1 timeout 100 "$1" "$2" &
other=$!
RANK=0 GROUP_RANK=0 timeout 100 "$1" "$2"
wait "$other"
