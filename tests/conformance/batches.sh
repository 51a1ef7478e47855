#!/bin/sh
# batches.sh ROUNDS STARTER... BATCHES_RANK: so many rounds of random batches. For longer runs: BATCH_SEED is the first
# seed (default 1); others follow until BATCH_SECONDS have passed. What fails says how to repeat it.
set -eu
rounds=$1
shift
seed=${BATCH_SEED:-1}
end=$(($(date +%s) + ${BATCH_SECONDS:-0}))
while :; do
  if ! "$@" "$seed" "$rounds"; then
    echo "failed: $* $seed $rounds" >&2
    exit 1
  fi
  seed=$((seed + 1))
  [ "$(date +%s)" -lt "$end" ] || break
done
