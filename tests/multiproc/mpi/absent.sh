#!/bin/sh
# absent.sh MPIRUN CORE_RANK: one process never initialises. The others do not wait for it for ever, and say so.
set -u
text=$(FARANDOLE_START_TIMEOUT=3 timeout 60 "$1" -n 3 sh -c "
  test \${OMPI_COMM_WORLD_RANK:-\$PMI_RANK} = 1 && exec sleep 70
  exec $2 allreduce_until_lost ordinary alone leave 7" 2>&1)
code=$?
echo "$text"
if [ $code -eq 0 ] || [ $code -eq 124 ]; then
  echo "ended with $code"
  exit 1
fi
echo "$text" | grep -q 'rank [02]: MPI_Init has not returned'
