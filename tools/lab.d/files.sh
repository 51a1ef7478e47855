# The files of each host: keys, ssh's and sshd's settings, names. Variables from up.sh.
# shellcheck shell=bash

# names_of NUMBER: what others call it; the hostname too if nobody else has it.
names_of() {
  local other same=0
  for other in "${hostnames[@]}"; do [ "$other" != "${hostnames[$1]}" ] || same=$((same + 1)); done
  echo -n "h$1"
  if [ "$same" -eq 1 ] && [[ ! "${hostnames[$1]}" =~ ^h[0-9]+$ ]]; then echo -n " ${hostnames[$1]}"; fi
}

six_of() { echo "fd00::$((10 + $1))"; }

is_loopback() { [[ " ${loopback[*]} " == *" $1 "* ]]; }

# hosts_file NUMBER: as seen by that host.
hosts_file() {
  local i names
  printf '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n'
  if is_loopback "$1"; then printf '127.0.1.1\t%s\n' "${hostnames[$1]}"; fi
  for ((i = 0; i < count; i++)); do
    names=$(names_of "$i")
    if [ "$i" -eq "$1" ] && [[ " $names " != *" ${hostnames[i]} "* ]]; then names+=" ${hostnames[i]}"; fi
    # Nobody else can resolve, let alone reach, a host behind the gateway.
    if [ -n "${nats[i]}" ] && [ "$i" -ne "$1" ]; then continue; fi
    if [ "$i" -eq "$1" ] && is_loopback "$i"; then
      names=$(tr ' ' '\n' <<<"$names" | grep -vxF "${hostnames[i]}" | paste -sd' ' || true)
      [ -n "$names" ] || continue
    fi
    if [ -n "${bridged[i]}" ] && [ "$i" -eq "$1" ]; then
      printf '%s\t%s\n' "$inside" "$names"
    elif [ -n "$ipv4" ]; then
      printf '%s\t%s\n' "${addresses[i]}" "$names"
    fi
    if [ -n "$ipv6" ] && [ -z "${nats[i]}${nats[$1]}" ]; then printf '%s\t%s h%s.v6\n' "$(six_of "$i")" "$names" "$i"; fi
  done
  if [ -n "$any_nat" ]; then printf '%s\tgw\n' "$gateway"; fi
}

known_hosts() {
  local i key places word
  for ((i = 0; i < count; i++)); do
    key=$(cut -d' ' -f1,2 "$dir/hosts/h$i/lab/host_key.pub")
    places="[${addresses[i]}]:$port"
    for word in $(names_of "$i"); do places+=",[$word]:$port"; done
    [ -z "$ipv6" ] || places+=",[$(six_of "$i")]:$port,[h$i.v6]:$port"
    [ -z "${nats[i]}" ] || places+=",[$gateway]:${nats[i]},[gw]:${nats[i]}"
    echo "$places $key"
  done
}

# Plain `ssh h1` works.
ssh_config() {
  local i
  for ((i = 0; i < count; i++)); do
    [ -z "${nats[i]}" ] || [ "$i" -eq "$1" ] ||
      printf 'Host %s\n  HostName %s\n  Port %s\n' "$(names_of "$i")" "$gateway" "${nats[i]}"
  done
  printf 'Host'
  for ((i = 0; i < count; i++)); do printf ' %s' "$(names_of "$i")"; done
  printf ' h*.v6 10.77.0.* !%s fd00::*\n  Port %s\n' "$gateway" "$port"
}

sshd_config() {
  cat <<TEXT
Port $port
HostKey /run/lab/host_key
PidFile /run/sshd.pid
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 200
PrintMotd no
PrintLastLog no
UseDNS no
AcceptEnv LANG LC_*
Subsystem sftp internal-sftp
TEXT
}

write_files() {
  local i host
  for ((i = 0; i < count; i++)); do
    host=$dir/hosts/h$i
    mkdir -p "$host"/{etc,fs,lab,root/.ssh}
    ssh-keygen -q -t ed25519 -N '' -C "lab host h$i" -f "$host/lab/host_key" </dev/null &
    ssh-keygen -q -t ed25519 -N '' -C "root@${hostnames[i]}" -f "$host/root/.ssh/id_ed25519" </dev/null &
    sshd_config >"$host/lab/sshd_config"
    hosts_file "$i" >"$host/etc/hosts"
    echo "${hostnames[i]}" >"$host/etc/hostname"
    echo '# The laboratory has no name server.' >"$host/etc/resolv.conf"
    tr -d - </proc/sys/kernel/random/uuid >"$host/etc/machine-id"
    cat /proc/sys/kernel/random/uuid >"$host/etc/boot_id"
    ssh_config "$i" >"$host/root/.ssh/config"
    {
      echo "number=$i hostname=${hostnames[i]} interface=${interfaces[i]} nat=${nats[i]}"
      echo "address=$([ -n "$ipv4" ] && echo "${addresses[i]}" || six_of "$i")"
      echo "six=$([ -z "$ipv6" ] || [ -n "${nats[i]}" ] || six_of "$i")"
    } >"$host/facts"
  done
  wait
  known_hosts >"$dir/known_hosts"
  cat "$dir"/hosts/*/root/.ssh/id_ed25519.pub >"$dir/authorized_keys"
  for ((i = 0; i < count; i++)); do
    cp "$dir/known_hosts" "$dir/authorized_keys" "$dir/hosts/h$i/root/.ssh/"
  done
}
