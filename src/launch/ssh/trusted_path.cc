#include "launch/ssh/trusted_path.h"

namespace farandole::launch::ssh {

// One ls for all parts: it sorts its arguments, and a path sorts behind every path that it begins
// with. The lines of a name that holds line ends are looked at like all others.
std::string trustedPathFunction() {
  return
      // Who owns it, by name if there is one.
      "owner(){ set -- $(LC_ALL=C ls -ld -- \"$1\"); echo \"$3\"; }; "
      "look(){ c=; f=; while read -r m n u g r; do f=${f:-$u}; "
      "case $u in (0|$me|$f) ;; (*) echo \"$1 belongs to user $(owner \"$1\")\"; return;; esac; "
      "case $m in (l*) echo \"$1 is a symbolic link\"; return;; esac; "
      "case $c$m in (d????????[tT]*) ;; ([-d]????w*|[-d]???????w*) "
      "echo \"$1 can be written by others: chmod go-w $1\"; return;; esac; "
      "case $m in (d?????[-S]??[-T]*) c=closed;; esac; shift; done; "
      "test $# -gt 0 || echo yes; }; "
      "trusted(){ no=; p=$1; case $p in (/*) ;; (*) return 1;; esac; me=$(id -u); set -- \"$p\"; "
      "until test \"$p\" = /; do p=${p%/*}; p=${p:-/}; set -- \"$p\" \"$@\"; done; "
      "no=$(LC_ALL=C ls -ldn -- \"$@\" 2>/dev/null | look \"$@\"); test \"$no\" = yes; }; ";
}

}  // namespace farandole::launch::ssh
