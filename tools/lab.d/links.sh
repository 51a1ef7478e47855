# cut, heal, rate, loss, delay, port: what happens to a host's link while the laboratory runs.
# What is in force is remembered in hosts/HOST/set.* for `status`.
# shellcheck shell=bash

remember() {
  if [ "$3" = off ]; then rm -f "$dir/hosts/$1/set.$2"; else echo "$3" >"$dir/hosts/$1/set.$2"; fi
}

# Frames between two ports of the switch that are lost.
pair_table() {
  in_net "$switch" nft -f - <<'TEXT'
table bridge lab {
set cut {
typeof iifname . oifname
}
chain cut { type filter hook forward priority 0
}
}
flush chain bridge lab cut
add rule bridge lab cut iifname . oifname @cut drop
TEXT
}

# change_way add|delete FROM TO: hN is at port vN, or eN if it is delayed.
change_way() {
  local from to
  for from in "v$2" "e$2"; do
    for to in "v$3" "e$3"; do
      in_net "$switch" nft "$1" element bridge lab cut "{ \"$from\" . \"$to\" }"
    done
  done
}

lab_cut() {
  enter_switch
  local oneway='' first
  if [ "${1:-}" = --one-way ]; then
    oneway=yes
    shift
    [ $# -eq 2 ] || fail "cut --one-way: from which host to which?"
  fi
  enter_host "$@"
  first=$number
  if [ $# -eq 1 ]; then
    in_net "$switch" ip link set "v$first" down
    remember "$host" link cut
    return
  fi
  [ -z "$nat" ] || fail "cut $1 $2: $1 is behind the gateway; only its whole link can be cut"
  enter_host "$2"
  [ -z "$nat" ] || fail "cut $1 $2: $2 is behind the gateway; only its whole link can be cut"
  pair_table
  change_way add "$first" "$number"
  if [ -z "$oneway" ]; then change_way add "$number" "$first"; fi
}

lab_heal() {
  enter_switch
  local list
  if [ $# -eq 0 ]; then
    read -ra list <<<"$(hosts)"
    in_net "$switch" nft delete table bridge lab 2>/dev/null || true
    set -- "${list[@]}"
  elif [ $# -eq 2 ]; then
    heal_pair "$@"
    return
  fi
  for host in "$@"; do
    enter_host "$host"
    in_net "$switch" ip link set "v$number" up
    remember "$host" link off
  done
}

heal_pair() {
  local first
  enter_host "$1"
  first=$number
  enter_host "$2"
  change_way delete "$first" "$number" 2>/dev/null || true
  change_way delete "$number" "$first" 2>/dev/null || true
}

# rate HOST RATE [BURST]
lab_rate() {
  enter_switch
  enter_host "$@"
  local rate=${2:-} burst=${3:-256kb} end
  [[ "$rate" =~ ^([0-9]+(\.[0-9]+)?[kmgt]?(bit|bps)|off)$ ]] || fail "rate $host: how much? e.g. 1gbit, 100mbit or off"
  for end in "$pid $interface" "$switch v$number"; do
    in_net "${end% *}" tc qdisc del dev "${end#* }" root 2>/dev/null || true
    [ "$rate" = off ] ||
      in_net "${end% *}" tc qdisc add dev "${end#* }" root tbf rate "$rate" burst "$burst" latency 50ms
  done
  remember "$host" rate "$rate"
}

# Where packets arrive, on both ends: the sender does not notice.
lab_loss() {
  enter_switch
  enter_host "$@"
  local percent=${2:-} end which
  [[ "$percent" =~ ^([0-9]{1,2}|100|off)$ ]] || fail "loss $host: how many percent? 0 to 100, or off"
  [ "$percent" != 0 ] || percent=off
  which="numgen random mod 100 < $percent"
  [ "$percent" != 100 ] || which=
  for end in "$pid $interface" "$switch v$number"; do
    in_net "${end% *}" nft delete table netdev "loss_${number}" 2>/dev/null || true
    [ "$percent" = off ] || in_net "${end% *}" nft -f - <<TEXT
table netdev loss_$number {
chain loss { type filter hook ingress device "${end#* }" priority 0
$which drop
}
}
TEXT
  done
  remember "$host" loss "$([ "$percent" = off ] && echo off || echo "$percent%")"
}

# delay HOST MS [PROGRAM]: the host's port vN leaves the switch; frames go vN - lab_delay - dN = eN - switch.
lab_delay() {
  enter_switch
  enter_host "$@"
  local ms=${2:-} program=${3:-$repository/build/bin/lab_delay} file=$dir/hosts/$1/delay.pid old i
  [[ "$ms" =~ ^([0-9]{1,4}(\.[0-9]{1,3})?|off)$ ]] || fail "delay $host: how many ms? e.g. 5, 0.5 or off"
  [ -z "$nat" ] || fail "delay $host: not for hosts behind the gateway"
  if old=$(alive "$file"); then
    kill -KILL "$old"
    in_net "$switch" ip link delete "d$number"
    in_net "$switch" ip link set "v$number" master br0
    rm -f "$file"
  fi
  remember "$host" delay off
  [ "$ms" != off ] || return 0
  [ -x "$program" ] || fail "delay needs $program; build it with: cmake --build build --target lab_delay"
  in_net "$switch" ip -batch - <<TEXT
link add d$number type veth peer name e$number
link set d$number addrgenmode none
link set v$number nomaster
link set v$number addrgenmode none
link set d$number up
link set e$number master br0 up
TEXT
  setsid nsenter --net="/proc/$switch/ns/net" -- "$program" "v$number" "d$number" \
    "$(awk -v ms="$ms" 'BEGIN { printf "%d", ms * 1000 }')" </dev/null >"$dir/hosts/$host/delay.log" 2>&1 &
  identity $! >"$file" || true
  for ((i = 0; i < 500; i++)); do
    grep -qx ready "$dir/hosts/$host/delay.log" && break
    alive "$file" >/dev/null || fail "delay $host: $(cat "$dir/hosts/$host/delay.log")"
    sleep 0.01
  done
  remember "$host" delay "$ms ms each way"
}

# port HOST PORT drop|refuse|open: sets, so that one port has one state.
lab_port() {
  enter_host "$@"
  local which=${2:-} what=${3:-} set
  [[ "$which" =~ ^[0-9]{1,5}(-[0-9]{1,5})?$ ]] || fail "port $host: which port? e.g. 12345 or 30000-30099"
  case "$what" in drop | refuse | open) ;; *) fail "port $host $which: drop, refuse or open?" ;; esac
  in_net "$pid" nft -f - <<'TEXT'
table inet ports {
set dropped { type inet_service
flags interval
}
set refused { type inet_service
flags interval
}
chain input { type filter hook input priority 0
}
}
flush chain inet ports input
add rule inet ports input tcp dport @dropped drop
add rule inet ports input tcp dport @refused reject with tcp reset
TEXT
  for set in dropped refused; do
    in_net "$pid" nft delete element inet ports "$set" "{ $which }" 2>/dev/null || true
  done
  case "$what" in
    drop) in_net "$pid" nft add element inet ports dropped "{ $which }" ;;
    refuse) in_net "$pid" nft add element inet ports refused "{ $which }" ;;
  esac
  remember "$host" "port.$which" "$([ "$what" = open ] && echo off || echo "$what")"
}
