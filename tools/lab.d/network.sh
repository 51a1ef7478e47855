# The switch and the hosts' links. Variables from up.sh.
# shellcheck shell=bash

# Commands for `ip -batch` in the switch's namespace: port vN leads to host hN.
switch_batch() {
  local i
  echo "link set lo up"
  echo "link add br0 type bridge mcast_snooping 0"
  echo "link set br0 up"
  for ((i = 0; i < count; i++)); do
    echo "link add v$i type veth peer name ${interfaces[i]} netns ${machines[i]:-${pids[i]}}"
    if [ -z "${nats[i]}" ]; then
      echo "link set v$i master br0 up"
    else
      echo "link set v$i up"
      echo "address add 192.168.$((100 + i)).1/24 dev v$i"
    fi
  done
  if [ -n "$any_nat" ]; then echo "address add $gateway/24 dev br0"; fi
}

# host_batch NUMBER: in the host's namespace.
host_batch() {
  local link=${interfaces[$1]}
  echo "link set lo up"
  echo "link set $link up"
  if [ -n "${bridged[$1]}" ]; then
    echo "address add $inside/16 dev $link"
    echo "route add default via ${inside%.*}.1"
    return
  fi
  if [ -n "$ipv4" ]; then echo "address add ${addresses[$1]}/24 dev $link"; fi
  if [ -n "${nats[$1]}" ]; then
    echo "route add default via ${addresses[$1]%.*}.1"
  elif [ -n "$ipv6" ]; then
    echo "address add $(six_of "$1")/64 dev $link nodad"
  fi
  if [ -n "$docker0" ]; then
    # With a container's end plugged in, so that it looks as alive as the real link.
    echo "link add docker0 type bridge"
    echo "link add veth7f3a type veth peer name veth7f3b"
    echo "link set veth7f3a master docker0 up"
    echo "link set veth7f3b up"
    echo "link set docker0 up"
    echo "address add 172.17.0.1/16 dev docker0"
  fi
}

# What a gateway does: hosts behind it go out under its address; only mapped ports come in.
nat_rules() {
  local i to ports
  echo "table ip nat {"
  echo "chain in { type nat hook prerouting priority -100"
  for ((i = 0; i < count; i++)); do
    [ -n "${nats[i]}" ] || continue
    to=${addresses[i]} ports=${mapped[i]}
    echo "ip daddr $gateway tcp dport ${nats[i]} dnat to $to:$port"
    [ -z "$ports" ] || echo "ip daddr $gateway tcp dport $ports dnat to $to"
  done
  echo "}"
  echo "chain out { type nat hook postrouting priority 100"
  echo "ip saddr 192.168.0.0/16 masquerade"
  echo "}"
  echo "}"
  echo "table ip filter {"
  echo "chain forward { type filter hook forward priority 0"
  echo "ct state established,related accept"
  echo "ct status dnat accept"
  echo "ip daddr 192.168.0.0/16 drop"
  echo "}"
  echo "}"
}

# machine_batch NUMBER: in the namespace of the machine whose bridge a host is on.
machine_batch() {
  local link=${interfaces[$1]}
  echo "link set lo up"
  echo "link set $link up"
  echo "address add ${addresses[$1]}/24 dev $link"
  echo "link add inner type veth peer name $link netns ${pids[$1]}"
  echo "link set inner up"
  echo "address add ${inside%.*}.1/16 dev inner"
}

# What docker does for `docker run -p`.
machine_rules() {
  echo "table ip nat {"
  echo "chain in { type nat hook prerouting priority -100"
  echo "ip daddr ${addresses[$1]} tcp dport { ${bridged[$1]} } dnat to $inside"
  echo "}"
  echo "chain out { type nat hook postrouting priority 100"
  echo "ip saddr ${inside%.*}.0/24 oifname ${interfaces[$1]} masquerade"
  echo "}"
  echo "}"
}

# process_of FILE: the process it names, once it has a network of its own.
process_of() {
  local i process
  for ((i = 0; i < 500; i++)); do
    process=$(alive "$1") || return 1
    [ "/proc/$process/ns/net" -ef /proc/self/ns/net ] || break
    sleep 0.01
  done
  echo "$process"
}

connect() {
  local i pids=() machines=() switch
  switch=$(process_of "$dir/switch.pid") || fail "the switch did not start: $(cat "$dir/switch.log")"
  for ((i = 0; i < count; i++)); do
    pids[i]=$(alive "$dir/hosts/h$i/pid") || fail "h$i did not start: $(cat "$dir/hosts/h$i/log")"
  done
  for ((i = 0; i < count; i++)); do
    [ -n "${bridged[i]}" ] || continue
    machines[i]=$(process_of "$dir/hosts/h$i/machine.pid") || fail "the machine of h$i did not start"
  done
  switch_batch | in_net "$switch" ip -batch -
  for i in "${!machines[@]}"; do
    machine_batch "$i" | in_net "${machines[i]}" ip -batch -
    machine_rules "$i" | in_net "${machines[i]}" nft -f -
    in_net "${machines[i]}" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
  done
  for ((i = 0; i < count; i++)); do
    host_batch "$i" | in_net "${pids[i]}" ip -batch -
  done
  if [ -n "$any_nat" ]; then
    nat_rules | in_net "$switch" nft -f -
    # Of the opener's network namespace.
    in_net "$switch" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
  fi
}
