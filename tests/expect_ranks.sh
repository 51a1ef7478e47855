#!/usr/bin/env bash
# expect_ranks COUNT NAME COMMAND...: the command ends well, and each of so many ranks of the conformance suite has said
# so. Otherwise shows what it printed, and sets failed=1.
failed=0
expect_ranks() {
  local count=$1 name=$2 text code=0
  shift 2
  text=$(timeout -k 5 60 "$@" 2>&1) || code=$?
  if [ $code -eq 0 ] && [ "$(grep -c "rank [0-9]* of $count: " <<<"$text")" -eq "$count" ]; then
    echo "$name: ok"
    return
  fi
  echo "$name: code $code"
  echo "$text"
  # shellcheck disable=SC2034
  failed=1
}
