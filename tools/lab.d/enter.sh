# exec, shell, sshd.
# shellcheck shell=bash

lab_exec() {
  enter_host "$@"
  shift
  [ "${1:-}" != -- ] || shift
  [ $# -gt 0 ] || fail "exec $host: which command?"
  # The shell in the middle has the host's namespaces, but is no process of the host: its child is the first one there.
  # It passes on the signals that only it gets (a terminal sends Ctrl-C to both), and takes the child with it when it
  # is killed. Its own standard error is closed, for it would comment on the child's end.
  # shellcheck disable=SC2016
  HOME=/root exec nsenter --target "$pid" --mount --uts --ipc --net --pid --no-fork -- /bin/bash -c '
    cd -- "$1" 2>/dev/null || cd /root
    shift
    unset TMPDIR XDG_RUNTIME_DIR XDG_CACHE_HOME XDG_CONFIG_HOME SSH_AUTH_SOCK SSH_AGENT_PID OLDPWD
    exec 3>&2 2>/dev/null
    env --default-signal=INT,QUIT setpriv --pdeathsig KILL -- "$@" <&0 2>&3 3>&- &
    child=$!
    exec 3>&-
    trap : INT QUIT
    for name in TERM HUP USR1 USR2; do trap "kill -$name $child" $name; done
    while :; do
      wait $child
      code=$?
      kill -0 $child || exit $code
    done' lab "$PWD" "$@"
}

lab_shell() {
  enter_host "$@"
  shift
  lab_exec "$host" -- ssh -q -t "$host" "$@"
}

lab_sshd() {
  enter_host "$@"
  local file=/proc/$pid/root/run/sshd.pid inner i
  case "${2:-}" in
    on)
      [ ! -e "$file" ] || return 0
      nsenter --target "$pid" --mount --uts --ipc --net --pid -- /usr/sbin/sshd -f /run/lab/sshd_config -E /run/lab/sshd.log
      for ((i = 0; i < 500; i++)); do
        [ ! -s "$file" ] || return 0
        sleep 0.01
      done
      fail "sshd of $host did not start; see /proc/$pid/root/run/lab/sshd.log"
      ;;
    off)
      [ -e "$file" ] || return 0
      inner=$(cat "$file")
      # Removes its pid file when it ends.
      nsenter --target "$pid" --mount --pid -- /bin/kill "$inner"
      for ((i = 0; i < 500; i++)); do
        [ -e "$file" ] || return 0
        sleep 0.01
      done
      fail "sshd of $host does not end"
      ;;
    *) fail "sshd $host: on or off?" ;;
  esac
}
