# shellcheck shell=sh
# One Redis server that lives at most as long as this script's standard input stays open.
#
#   redis.conf in its directory, where there is one, is the server's configuration
#   SOLOIST_TEST_REDIS_SERVER   another program than redis-server on PATH
#   $1      port on 127.0.0.1
#   $2...   further arguments of redis-server
#   stdin   "start" starts the server, "kill" ends it by SIGKILL and leaves its files
#   stdout  "dir DIRECTORY" first, then an answer to each: "started PID", "killed"
#
# The test process holds the other end of standard input. The kernel closes it when that process
# ends, even by SIGKILL, and `read` below returns: so no server outlives its test.
set -eu
port=$1
shift
dir=$(mktemp -d "${TMPDIR:-/tmp}/redis-test.XXXXXX")
pid=

end_server() {
    if [ -n "$pid" ]; then
        kill -KILL "$pid" || true
        wait "$pid" || true
        pid=
    fi
} 2>/dev/null

finish() {
    end_server
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM
trap '' PIPE # the test may be gone before it is answered: then echo fails, and the end is orderly

echo "dir $dir"
while read -r request; do
    case $request in
    start)
        config=$dir/redis.conf
        [ -e "$config" ] || config=
        # Nothing here has to survive a power cut; persistence is for tests that ask for it.
        "${SOLOIST_TEST_REDIS_SERVER:-redis-server}" ${config:+"$config"} --bind 127.0.0.1 --port "$port" --dir "$dir" --save '' \
            --daemonize no "$@" </dev/null >>"$dir/log" 2>&1 &
        pid=$!
        echo "started $pid"
        ;;
    kill)
        end_server
        echo killed
        ;;
    esac
done
