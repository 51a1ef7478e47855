#!/bin/sh
# launched_lost.sh FARANDOLE MPI CORE_RANK: under `farandole run --engine mpi` a rank that fails while the others wait for it,
# inside MPI, is named, and its code is the job's.
set -u
text=$("$1" run -np 3 --engine mpi --mpi "$2" --grace 2 sh -c "
  test \$FARANDOLE_RANK = 1 && { sleep 1; exit 9; }
  exec $3 allreduce_until_lost ordinary alone leave 7" 2>&1)
code=$?
echo "$text"
echo "$text" | grep -q 'first cause: rank 1 on .* exited with code 9' || { echo "rank 1 is not named"; exit 1; }
test $code = 9 || { echo "the job ended with $code"; exit 1; }
