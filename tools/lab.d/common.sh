# What all parts of tools/lab share. Variables from tools/lab: name, dir, parts, repository.
# shellcheck shell=bash

# Every laboratory folder holds this file; nothing else is ever removed.
marker=farandole-laboratory
port=12345
gateway=10.77.0.254
# Of every container on a machine's bridge.
inside=172.17.0.2

fail() {
  echo "tools/lab: $*" >&2
  exit 1
}

need_root() {
  [ "$(id -u)" -eq 0 ] || fail "needs root (namespaces, interfaces); try: sudo tools/lab ${command:-up}"
}

# "pid starttime" of a process: a number that was given to another process later is not it.
identity() {
  local line fields
  { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
  read -ra fields <<<"${line##*) }"
  [ "${fields[0]}" != Z ] && [ "${fields[0]}" != X ] || return 1
  echo "$1 ${fields[19]}"
}

# Prints the pid that file $1 names if that very process still runs.
alive() {
  local recorded
  { read -r recorded <"$1"; } 2>/dev/null || return 1
  [ "$(identity "${recorded%% *}")" = "$recorded" ] || return 1
  echo "${recorded%% *}"
}

need_up() {
  need_root
  [ -e "$dir/$marker" ] || fail "laboratory '$name' is not up (no $dir); start it with: tools/lab up --name $name"
}

# Sets pid, and host, facts of the host: hostname, interface, address, six, nat, number.
enter_host() {
  need_up
  [ $# -ge 1 ] || fail "$command: which host? tools/lab status lists them"
  host=$1
  [ -f "$dir/hosts/$host/facts" ] || fail "laboratory '$name' has no host '$host'; it has: $(hosts)"
  # shellcheck disable=SC1090
  source "$dir/hosts/$host/facts"
  pid=$(alive "$dir/hosts/$host/pid") || fail "$host is dead; end the laboratory with: tools/lab down --name $name"
}

enter_switch() {
  need_up
  switch=$(alive "$dir/switch.pid") || fail "the switch is dead; end the laboratory with: tools/lab down --name $name"
}

hosts() {
  local folder list=()
  for folder in "$dir"/hosts/*/; do
    folder=${folder%/}
    list+=("${folder##*/}")
  done
  printf '%s\n' "${list[@]}" | sort -V | tr '\n' ' ' | sed 's/ $//'
}

# in_net PID COMMAND...: in the network (only) of that process.
in_net() {
  local of=$1
  shift
  # Never this machine's own, whatever went wrong.
  [ ! "/proc/$of/ns/net" -ef /proc/self/ns/net ] || fail "process $of has no network of its own"
  nsenter --net="/proc/$of/ns/net" -- "$@"
}
