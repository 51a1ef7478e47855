# up: the options, then files, hosts, network.
# shellcheck shell=bash
# shellcheck source=files.sh
source "$parts/files.sh"
# shellcheck source=network.sh
source "$parts/network.sh"

up_help() {
  cat <<'TEXT'
usage: tools/lab up [--name NAME] [--dir DIR] [OPTIONS]

  --hosts N                   hosts h0 ... hN-1 (default 3); addresses 10.77.0.10, 10.77.0.11, ...
  --hostname h1=box,h2=box    hostnames; they may be equal (default: h0, h1, ...)
  --interface h1=ens5         names of network interfaces (default: eth0)
  --loopback-name h1,h2|all   the host's own /etc/hosts maps its hostname to 127.0.1.1, as Debian does
  --docker0                   every host also has docker0, 172.17.0.1/16 everywhere, which leads nowhere
  --ipv6                      also addresses fd00::10, fd00::11, ... (and names h0.v6, h1.v6, ...)
  --ipv6-only                 only those
  --nat h2[:PORTS]            h2 is behind the gateway 10.77.0.254 (gw), which maps its port 22002 to the sshd of h2 and
                              PORTS (A or A-B) to the same ports of h2; nothing else of h2 is reachable. Repeatable
  --bridged h1[:PORTS]        h1 is a container on the bridge of a machine that has h1's address: inside it is 172.17.0.2,
                              as every other such host is; that machine passes its sshd's port and PORTS on. Repeatable
  --shm SIZE                  size of each host's /dev/shm (default 1g)
  --hide PATH                 a folder that the hosts do not have, e.g. this repository; only h0 keeps it. Repeatable
  --keep PATH                 a folder below /tmp, /run or /root that the hosts shall see. Repeatable; this repository is kept anyway
TEXT
}

# each FUNCTION a=b,c=d: calls FUNCTION a b; FUNCTION c d.
each() {
  local pair pairs
  IFS=, read -ra pairs <<<"$2"
  for pair in "${pairs[@]}"; do
    [[ "$pair" == *=* ]] || fail "$pair: expected HOST=NAME"
    "$1" "${pair%%=*}" "${pair#*=}"
  done
}

number_of() {
  local number=${1#h}
  [[ "$1" == h* && "$number" =~ ^[0-9]+$ && "$number" -lt "$count" ]] || fail "no host '$1' among $count hosts"
  echo "$number"
}

set_hostname() {
  [[ "$2" =~ ^[A-Za-z0-9.-]{1,63}$ ]] || fail "--hostname $1=$2: not a hostname"
  local number && number=$(number_of "$1")
  hostnames[number]=$2
}

set_interface() {
  [[ "$2" =~ ^[A-Za-z0-9._-]{1,15}$ ]] || fail "--interface $1=$2: not the name of an interface"
  local number && number=$(number_of "$1")
  interfaces[number]=$2
}

set_nat() {
  local number && number=$(number_of "${1%%:*}")
  any_nat=yes nats[number]=$((22000 + number))
  addresses[number]=192.168.$((100 + number)).2
  if [[ "$1" == *:* ]]; then
    [[ "${1#*:}" =~ ^[0-9]+(-[0-9]+)?$ ]] || fail "--nat $1: ports are A or A-B"
    mapped[number]=${1#*:}
  fi
}

set_bridged() {
  local number && number=$(number_of "${1%%:*}")
  bridged[number]=$port
  if [[ "$1" == *:* ]]; then
    [[ "${1#*:}" =~ ^[0-9]+(-[0-9]+)?$ ]] || fail "--bridged $1: ports are A or A-B"
    bridged[number]+=", ${1#*:}"
  fi
}

set_loopback() {
  local word words number
  [ "$1" != all ] || { loopback=("${!hostnames[@]}") && return; }
  IFS=, read -ra words <<<"$1"
  for word in "${words[@]}"; do
    number=$(number_of "$word")
    loopback+=("$number")
  done
}

# Options that name hosts are looked at when the number of hosts is known.
parse() {
  count=3 shm=1g hide='' docker0='' ipv6='' ipv4=yes any_nat=''
  keep=() hostnames=() interfaces=() addresses=() nats=() mapped=() bridged=() loopback=()
  local names=() links=() natted=() bridges=() loops=() i word
  while [ $# -gt 0 ]; do
    case "$1" in
      -h | --help) up_help && exit 0 ;;
      --docker0) docker0=yes && shift && continue ;;
      --ipv6) ipv6=yes && shift && continue ;;
      --ipv6-only) ipv6=yes ipv4='' && shift && continue ;;
    esac
    [ $# -ge 2 ] || fail "up: $1: unknown, or without its value; tools/lab up --help lists the options"
    case "$1" in
      --hosts) count=$2 ;;
      --hostname) names+=("$2") ;;
      --interface) links+=("$2") ;;
      --loopback-name) loops+=("$2") ;;
      --nat) natted+=("$2") ;;
      --bridged) bridges+=("$2") ;;
      --shm) shm=$2 ;;
      --hide)
        [ -d "$2" ] || fail "--hide $2: no such folder"
        hide+=${hide:+:}$(realpath "$2")
        ;;
      --keep)
        [ -d "$2" ] || fail "--keep $2: no such folder"
        keep+=("$(realpath "$2")")
        ;;
      *) fail "up: no option $1; tools/lab up --help lists them" ;;
    esac
    shift 2
  done
  [[ "$count" =~ ^[0-9]+$ && "$count" -ge 1 && "$count" -le 64 ]] || fail "--hosts $count: between 1 and 64"
  [[ "$shm" =~ ^[0-9]+[kmg%]?$ ]] || fail "--shm $shm: a size like 64m or 1g"
  for ((i = 0; i < count; i++)); do
    hostnames[i]=h$i interfaces[i]=eth0 addresses[i]=10.77.0.$((10 + i)) nats[i]='' mapped[i]='' bridged[i]=''
  done
  for word in "${names[@]}"; do each set_hostname "$word"; done
  for word in "${links[@]}"; do each set_interface "$word"; done
  for word in "${natted[@]}"; do set_nat "$word"; done
  for word in "${bridges[@]}"; do set_bridged "$word"; done
  for word in "${loops[@]}"; do set_loopback "$word"; done
  [ -n "$ipv4" ] || [ ${#natted[@]} -eq 0 ] || fail "--nat needs IPv4"
  [ -z "$ipv6" ] || [ ${#bridges[@]} -eq 0 ] || fail "--bridged is for IPv4 alone"
  case "$repository/" in /tmp/* | /run/* | /root/* | /var/tmp/*) keep+=("$repository") ;; esac
}

# A folder of a laboratory whose processes are all gone is a leftover: this machine was restarted, or they were killed.
claim_folder() {
  local file
  if [ -e "$dir/$marker" ]; then
    for file in "$dir"/hosts/*/pid "$dir"/switch.pid; do
      alive "$file" >/dev/null && fail "laboratory '$name' is already up in $dir; end it with: tools/lab down --name $name"
    done
    lab_down
  fi
  mkdir -m 711 "$dir" 2>/dev/null || fail "$dir exists and is not a laboratory's; choose another --dir"
  echo "$name" >"$dir/$marker"
}

start() {
  local i child host
  mkfifo "$dir/ready"
  exec 5<>"$dir/ready"
  setsid unshare --net sleep infinity </dev/null >"$dir/switch.log" 2>&1 5>&- &
  identity $! >"$dir/switch.pid"
  for ((i = 0; i < count; i++)); do
    host=$dir/hosts/h$i
    setsid unshare --mount --uts --ipc --net --pid --fork --kill-child --propagation private \
      "$parts/init.sh" "$dir" "h$i" "$shm" "$([ "$i" -eq 0 ] || echo "$hide")" "${keep[@]}" \
      </dev/null >"$host/log" 2>&1 5>&- &
    child=$!
    identity "$child" >"$host/unshare.pid" || true
  done
  for ((i = 0; i < count; i++)); do
    [ -n "${bridged[i]}" ] || continue
    setsid unshare --net sleep infinity </dev/null >/dev/null 2>&1 5>&- &
    identity $! >"$dir/hosts/h$i/machine.pid"
  done
  # No remarks of this shell when they are killed.
  disown -a
  for ((i = 0; i < count; i++)); do
    if ! read -r -t 20 -u 5 host; then
      tail -n 3 "$dir"/hosts/*/log >&2
      fail "the hosts did not start within 20 s"
    fi
  done
  exec 5>&-
}

up() {
  local tool
  parse "$@"
  need_root
  for tool in ip nft tc nsenter unshare setpriv ssh ssh-keygen /usr/sbin/sshd; do
    command -v "$tool" >/dev/null || fail "$tool is missing; install it with: tools/deps test"
  done
  # shellcheck source=state.sh
  source "$parts/state.sh"
  claim_folder
  trap lab_down EXIT
  write_files
  start
  connect
  trap - EXIT
}
