#!/bin/sh
# batches.sh SEEDS WORDS STARTER... BATCHES_RANK: random batches of so many seeds; WORDS follow the seed. For longer runs:
# BATCH_SEED is the first seed (default 1); others follow until BATCH_SECONDS have passed. What fails says how to repeat it.
set -eu
seeds=$1 words=$2
shift 2
seed=${BATCH_SEED:-1}
end=$(($(date +%s) + ${BATCH_SECONDS:-0}))
while :; do
  # shellcheck disable=SC2086 # they are words
  if ! "$@" "$seed" $words; then
    echo "failed: $* $seed $words" >&2
    exit 1
  fi
  seed=$((seed + 1)) seeds=$((seeds - 1))
  [ "$seeds" -gt 0 ] || [ "$(date +%s)" -lt "$end" ] || break
done
