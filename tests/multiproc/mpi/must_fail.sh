#!/bin/sh
# must_fail.sh COMMAND...: passes if the command ends by itself, within a minute, with a code that says it failed.
timeout -k 5 60 "$@"
code=$?
echo "ended with $code"
[ "$code" -ne 0 ] && [ "$code" -ne 124 ] && [ "$code" -ne 137 ]
