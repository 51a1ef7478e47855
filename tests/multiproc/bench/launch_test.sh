#!/usr/bin/env bash
# launch_test.sh FARANDOLE: `bench launch` starts ranks and counts every line of their output; a peer that is missing,
# fails or tears lines is named; wrong options are refused. How fast anything was is not looked at.
set -euo pipefail
farandole=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export FARANDOLE_PEERS=$scratch/peers

fail() {
  echo "FAILED: $*" >&2
  [ ! -s "$scratch/out" ] || cat "$scratch/out" >&2
  exit 1
}

launch() {  # launch OPTION...: its output is in $scratch/out
  "$farandole" bench launch --rounds 2 "$@" >"$scratch/out" 2>&1
}

# No peer at all: every one is named. (The PATH has what ranks need, and our own commands, which are no peers.)
mkdir -p "$scratch/bin"
for program in sh true; do ln -s "$(type -P "$program")" "$scratch/bin/$program"; done
for name in torchrun horovodrun; do ln -s "$(readlink -f "$farandole")" "$scratch/bin/$name"; done
PATH=$scratch/bin launch --ranks 2,5 --output 300K --csv "$scratch/out.csv" --json "$scratch/out.json" || fail "plain"
for peer in openmpi mpich intelmpi torchrun horovodrun; do
  grep -q "^peer $peer is missing .*install it with: " "$scratch/out" || fail "$peer is missing and must be named"
done
grep -q '^start, 2 ranks  *farandole  *2 ' "$scratch/out" || fail "no start of 2 ranks"
grep -q '^start, 5 ranks  *farandole  *2 ' "$scratch/out" || fail "no start of 5 ranks"
# 300 KiB are 3072 lines, from two ranks, in two rounds.
grep -q '^output, 2 ranks  *farandole .* all 12288 whole' "$scratch/out" || fail "not all lines of 2 ranks"
grep -q '^output, 2 ranks  *bare pipe .* all 12288 whole' "$scratch/out" || fail "not all lines of the bare pipe"
[ "$(wc -l <"$scratch/out.csv")" -eq 5 ] || fail "wrong number of rows: $(cat "$scratch/out.csv")"
grep -q '"contender": "farandole"' "$scratch/out.json" || fail "no JSON"

# A peer that starts nothing but loses and tears lines, and one that fails: neither is our failure.
mkdir -p "$scratch/peers/intelmpi/bin" "$scratch/false"
printf '#!/bin/sh\necho torn\n' >"$scratch/peers/intelmpi/bin/mpiexec.hydra"
printf '#!/bin/sh\necho no such luck >&2\nexit 7\n' >"$scratch/false/mpiexec.mpich"
chmod +x "$scratch/peers/intelmpi/bin/mpiexec.hydra" "$scratch/false/mpiexec.mpich"
PATH=$scratch/false:$PATH launch --ranks 2 --output 1K --against intelmpi,mpich || fail "peers that fail"
grep -q '^start, 2 ranks  *farandole .*x intelmpi' "$scratch/out" || fail "no ratio"
grep -q '^output, 2 ranks  *intelmpi .* 0 whole, 2 torn, 40 lost' "$scratch/out" || fail "torn lines must be counted"
grep -q '^start, 2 ranks: mpich failed: .*exit code 7: no such luck' "$scratch/out" || fail "a failure must be told"

# A host that cannot be reached is our failure, and told.
printf '#!/bin/sh\necho nobody there >&2\nexit 255\n' >"$scratch/false/ssh"
chmod +x "$scratch/false/ssh"
code=0
FARANDOLE_SSH=$scratch/false/ssh launch --hosts 192.0.2.1 --what start || code=$?
[ "$code" -eq 1 ] || fail "unreachable host: exit code $code"
grep -q '^start on 192.0.2.1: farandole first rank failed: ' "$scratch/out" || fail "unreachable host: not told"
grep -q '^start on 192.0.2.1: ssh true failed: .*nobody there' "$scratch/out" || fail "unreachable host: ssh not told"

for wrong in "--ranks 0" "--ranks 2," "--output 4x" "--output 5G" "--against nobody" "--what nothing" "--hosts a:b:c:d" \
  "--hosts 127.0.0.1" "--rounds 0"; do
  code=0
  # shellcheck disable=SC2086 # two words on purpose
  "$farandole" bench launch --rounds 1 $wrong >"$scratch/out" 2>&1 || code=$?
  [ "$code" -eq 2 ] || fail "$wrong: exit code $code"
  [ -s "$scratch/out" ] || fail "$wrong: nothing said"
done
echo "bench launch: all right"
