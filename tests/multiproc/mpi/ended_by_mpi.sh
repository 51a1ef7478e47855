#!/bin/bash
# ended_by_mpi.sh MPIRUN ENDING_MPI CORE_RANK exit|pipe: rank 2 is killed, and rank 0's MPI meets the broken connection before
# anybody else has noticed, and ends rank 0, or makes it write there: both ranks that are left name rank 2, nobody rank 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
await() {  # await SECONDS COMMAND...
  for ((i = 0; i < $1 * 50; ++i)); do
    if "${@:2}"; then return 0; fi
    sleep 0.02
  done
  echo "waited in vain: ${*:2}"
  cat "$folder/out" "$folder/err"
  return 1
}
ready() { [ "$(grep -c ready "$folder/out")" = 3 ]; }

export LD_PRELOAD_OF_RANKS=$2 MPI_ENDS_AT=$folder/now MPI_ENDS_BY=$4 FARANDOLE_HIERARCHY=off
# shellcheck disable=SC2016  # the ranks' own variables
"$1" -n 3 --mca orte_enable_recovery 1 -x LD_PRELOAD_OF_RANKS -x MPI_ENDS_AT -x MPI_ENDS_BY -x FARANDOLE_HIERARCHY \
  sh -c 'echo $$ > "$MPI_ENDS_AT.pid.$OMPI_COMM_WORLD_RANK"; export LD_PRELOAD=$LD_PRELOAD_OF_RANKS
    exec "$0" allreduce_until_lost ordinary alone leave 7' "$3" > "$folder/out" 2> "$folder/err" &
job=$!
await 40 ready
touch "$folder/now"
await 20 test -e "$folder/now.begun"
kill -9 "$(cat "$folder/now.pid.2")"
wait $job || true
cat "$folder/out" "$folder/err"
named=$(grep -c 'code=4 rank=2 message=rank 2 on' "$folder/out" || true)
if [ "$4" = exit ]; then
  grep -q 'rank 0: rank 2 on .*; MPI has ended this process because of it' "$folder/err" || { echo "rank 0 does not say why"; exit 1; }
  named=$((named + 1))
fi
[ "$named" = 2 ] || { echo "rank 2 is not named to both"; exit 1; }
! grep -q 'rank=0' "$folder/out" || { echo "rank 0 is named"; exit 1; }
