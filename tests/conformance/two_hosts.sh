#!/bin/sh
# two_hosts.sh FARANDOLE RANK CASE: two ranks on each of two hosts, which are this machine: a stand-in for ssh runs the
# remote command here.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/ssh" <<'END'
#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift 2
exec sh -c "$1"
END
chmod +x "$folder/ssh"
export FARANDOLE_SSH="$folder/ssh" HOME="$folder" XDG_CACHE_HOME="$folder/cache"
"$1" run -q --start-timeout 100 -H one.invalid:2,two.invalid:2 "$2" "$3"
