#!/bin/sh
# stopped.sh MPIRUN STOPPED create_group|finalize|exit TEXT: rank 1 stops inside that call; rank 0 ends by itself, with
# that text, and the starter ends rank 1.
set -u
text=$(timeout -k 5 60 "$1" -n 2 "$2" "$3" 2>&1)
code=$?
echo "$text"
echo "ended with $code"
stopped=$(echo "$text" | sed -n 's/.*stopped: process \([0-9]*\).*/\1/p')
left=no
for i in $(seq 50); do
  kill -0 "$stopped" 2>/dev/null || break
  sleep 0.1
  if [ "$i" -eq 50 ]; then
    left=yes
    kill -9 "$stopped"
    echo "the stopped rank is still there"
  fi
done
[ "$code" -ne 0 ] && [ "$code" -ne 124 ] && [ "$left" = no ] && echo "$text" | grep -q "rank 0: $4"
