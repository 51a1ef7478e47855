#!/bin/sh
# ends.sh COMMAND...: passes if the command ends by itself within a minute, with a code that says it failed. Unlike
# must_fail.sh it takes the code of a rank that was killed.
timeout 60 "$@"
code=$?
echo "ended with $code"
[ "$code" -ne 0 ] && [ "$code" -ne 124 ]
