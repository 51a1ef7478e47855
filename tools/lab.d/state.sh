# down, status, ps, pid, address.
# shellcheck shell=bash

lab_down() {
  need_root
  [ -e "$dir/$marker" ] || return 0
  local file victim victims=()
  for file in "$dir"/hosts/*/pid "$dir"/hosts/*/*.pid "$dir"/switch.pid; do
    # Killing a host's init ends every process of the host.
    if victim=$(alive "$file"); then
      kill -KILL "$victim" 2>/dev/null || true
      victims+=("$file")
    fi
  done
  for file in "${victims[@]}"; do
    for ((i = 0; i < 500; i++)); do
      alive "$file" >/dev/null || break
      sleep 0.01
    done
    [ "$i" -lt 500 ] || fail "process $(cat "$file") does not end; $dir is left as it is"
  done
  rm -rf --one-file-system "$dir"
}

lab_status() {
  need_up
  local list link state
  printf '%-5s %-12s %-15s %-10s %s\n' host hostname address interface state
  read -ra list <<<"$(hosts)"
  for link in "${list[@]}"; do
    # In a subshell: a dead host is a line, not the end of the table.
    if state=$(alive "$dir/hosts/$link/pid"); then state="up, pid $state"; else state=dead; fi
    (
      # shellcheck disable=SC1090,SC1091
      source "$dir/hosts/$link/facts"
      if [ "$state" != dead ]; then
        [ -e "/proc/$(alive "$dir/hosts/$link/pid")/root/run/sshd.pid" ] || state+=", sshd off"
        for change in "$dir/hosts/$link"/set.*; do
          [ ! -e "$change" ] || state+=", ${change##*/set.} $(cat "$change")"
        done
        [ -z "$nat" ] || state+=", behind $gateway: ssh port $nat"
      fi
      printf '%-5s %-12s %-15s %-10s %s\n' "$link" "$hostname" "$address" "$interface" "$state"
      [ -z "$six" ] || [ "$six" = "$address" ] || printf '%-5s %-12s %s\n' '' '' "$six"
    )
  done
}

lab_pid() {
  enter_host "$@"
  echo "$pid"
}

lab_address() {
  enter_host "$@"
  echo "$address"
}

# From outside, so that looking adds nothing to what is seen.
lab_ps() {
  enter_host "$@"
  local folder line words
  for folder in "/proc/$pid/root/proc"/[0-9]*; do
    [ "${folder##*/}" != 1 ] || continue
    { read -r line <"$folder/stat"; } 2>/dev/null || continue
    [[ "$line" == *"(sshd) "* || "$line" == *") "[ZX]\ * ]] && continue
    mapfile -d '' -t words 2>/dev/null <"$folder/cmdline" || continue
    echo "${folder##*/} ${words[*]:-(${line#*\(}}"
  done
}
