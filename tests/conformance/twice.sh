#!/bin/sh
# twice.sh COMMAND...: runs a job of the conformance suite twice; every rank must report the same digest both times.
set -eu
first=$("$@")
second=$("$@")
first=$(echo "$first" | grep digest | sort)
second=$(echo "$second" | grep digest | sort)
if [ -z "$first" ] || [ "$first" != "$second" ]; then
  printf 'the first time:\n%s\nthe second time:\n%s\n' "$first" "$second" >&2
  exit 1
fi
echo "$first"
