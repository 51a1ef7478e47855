#!/usr/bin/env bash
# bench_test.sh FARANDOLE: every operation gives right results on both paths (the bench compares every element), the
# files are written, wrong options and missing peers are named.
set -euo pipefail
farandole=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export FARANDOLE_PEERS=$scratch/none

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

for op in allreduce allgather broadcast alltoall reducescatter reduce gather scatter barrier; do
  "$farandole" bench collective --op "$op" --sizes 4,5000 --rounds 1 --csv "$scratch/$op.csv" >"$scratch/out" 2>&1 ||
    { cat "$scratch/out"; fail "$op"; }
  # Two sizes, two paths, two kinds of memory, and the heading.
  [ "$(wc -l <"$scratch/$op.csv")" -eq 9 ] || fail "$op: wrong number of rows: $(cat "$scratch/$op.csv")"
done

"$farandole" bench collective --ranks 3 --dtype bfloat16 --reduce max --sizes 70000 --rounds 1 --path engine \
  --json "$scratch/out.json" --svg "$scratch/out.svg" >/dev/null || fail "three ranks"
grep -q '"contender": "engine shared"' "$scratch/out.json" || fail "no JSON"
grep -q '</svg>' "$scratch/out.svg" || fail "no SVG"

"$farandole" bench collective --bound --path engine --sizes 64K --rounds 1 --against all >"$scratch/out" || fail "bound"
grep -q '^ *64K  bound ordinary ' "$scratch/out" || fail "no bound"
grep -q 'peer mpich is missing .*tools/peers mpich' "$scratch/out" || fail "a missing peer must be named"

"$farandole" bench memory --sizes 64K --rounds 1 >/dev/null || fail "memory"
"$farandole" bench peers | grep -q 'tools/peers deepspeed' || fail "peers"

for wrong in "--sizes 4x" "--dtype float31" "--op max" "--against nobody" "--reduce product" "--ranks 0"; do
  code=0
  # shellcheck disable=SC2086 # two words on purpose
  "$farandole" bench collective --path engine --rounds 1 $wrong >"$scratch/out" 2>&1 || code=$?
  [ "$code" -eq 2 ] || fail "$wrong: exit code $code"
  [ -s "$scratch/out" ] || fail "$wrong: nothing said"
done
echo "bench: all right"
