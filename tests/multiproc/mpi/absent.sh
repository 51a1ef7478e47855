#!/bin/sh
# absent.sh MPIRUN MPI_RANK: one process never initialises. The others do not wait for it for ever, and say so.
set -u
text=$(FARANDOLE_START_TIMEOUT=3 timeout 60 "$1" -n 3 sh -c "
  test \${OMPI_COMM_WORLD_RANK:-\$PMI_RANK} = 1 && exec sleep 70
  exec $2 allreduce_until_lost ordinary alone leave 7" 2>&1)
code=$?
echo "$text"
[ $code -ne 0 ] && [ $code -ne 124 ] || { echo "ended with $code"; exit 1; }
echo "$text" | grep -q 'rank [02]: MPI_Init has not returned'
