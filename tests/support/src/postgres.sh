# shellcheck shell=sh
# One PostgreSQL server that lives as long as this script's standard input stays open.
#
#   $1      directory of the PostgreSQL programs
#   $2      port on 127.0.0.1
#   stdout  whatever goes wrong, then, once the server accepts connections, "ready DIRECTORY"
#
# The test process holds the other end of standard input. The kernel closes it when that process
# ends, even by SIGKILL, and `read` below returns: so no server outlives its test.
set -eu
exec 2>&1
bin=$1 port=$2
dir=$(mktemp -d "${TMPDIR:-/tmp}/postgres-test.XXXXXX")

finish() {
    "$bin/pg_ctl" -D "$dir/data" -m immediate stop || true
    rm -rf "$dir"
} >/dev/null 2>&1
trap finish EXIT
trap 'exit 1' HUP INT TERM
trap '' PIPE # the test may be gone before "ready" is printed: then echo fails, and the end is orderly

"$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$dir/log" || {
    cat "$dir/log"
    exit 1
}

# Nothing here has to survive a power cut, so nothing waits for the disk.
options="-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$dir"
options="$options -c fsync=off -c synchronous_commit=off -c full_page_writes=off"
"$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -o "$options" -t 60 -w start >/dev/null || {
    cat "$dir/log"
    exit 1
}

echo "ready $dir"
read -r _ || true
