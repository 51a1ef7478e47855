#!/bin/bash
# launcher_killed.sh FARANDOLE MPI CORE_RANK: what Open MPI keeps while a job runs lies in folders of the job's own, which
# are gone when the launcher was killed with -9, and when the job has ended by itself.
set -euo pipefail
output=$(mktemp)
job=
trap 'rm -f "$output"' EXIT
await() {  # await SECONDS COMMAND...
  for ((i = 0; i < $1 * 50; ++i)); do
    if "${@:2}"; then return 0; fi
    sleep 0.02
  done
  echo "waited in vain: ${*:2}"
  cat "$output"
  ls -lR "/tmp/farandole-mpi-$job" "/dev/shm/farandole-mpi-$job" || true
  return 1
}
ready() { [ "$(grep -c ready "$output")" = 2 ]; }
gone() { [ ! -e "/tmp/farandole-mpi-$job" ] && [ ! -e "/dev/shm/farandole-mpi-$job" ]; }

# shellcheck disable=SC2016  # the ranks' own variables
script='echo "job=$FARANDOLE_JOB"; exec "$0" allreduce_until_lost ordinary alone leave 7'
"$1" run --no-prefix -np 2 --engine mpi --mpi "$2" --no-hierarchy sh -c "$script" "$3" > "$output" 2>&1 &
launcher=$!
await 40 ready
job=$(sed -n 's/^job=//p' "$output" | head -n 1)
ls "/tmp/farandole-mpi-$job"/ompi.* > /dev/null
ls "/dev/shm/farandole-mpi-$job"/vader_segment.* > /dev/null
kill -9 $launcher
wait $launcher || true
await 20 gone

# shellcheck disable=SC2016
"$1" run --no-prefix -np 2 --engine mpi --mpi "$2" sh -c 'echo "job=$FARANDOLE_JOB"' > "$output" 2>&1 || true
job=$(sed -n 's/^job=//p' "$output" | head -n 1)
test -n "$job"
gone || { echo "an ordinary end leaves its folders"; exit 1; }
