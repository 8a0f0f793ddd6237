# Too few descriptors, processes, bytes: every program ends by itself, with an answer or an error
# that says what was missing, and never with a wrong answer.
. "$(dirname "$0")/../tap.sh"
# The leak checker needs descriptors and a process of its own; the unit tests check leaks.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
db=$tap_dir/t.db
printf '{"backend":"bwrap","exit":1,"output":"bwrap: no\\n"}\n' | "$SANDWITNESS" record --db "$db" >/dev/null 2>&1
printf 'bwrap: setting up uid map: Permission denied\n' >"$tap_dir/in"
command -v prlimit >/dev/null || skip_all "no prlimit"

judge() { # NAME WANTED-IN-STDOUT COMMAND...: status 0 (or that of the command) only with the answer
	local name=$1 wanted=$2 n status bad=
	shift 2
	for n in 3 4 5 6 7 8 9 10 12 14 16 20 24 32 64; do
		timeout 20 prlimit --nofile=$n "$@" >"$tap_dir/out" 2>"$tap_dir/err"
		status=$?
		if [ $status -ge 124 ] && [ $status -ne 125 ] && [ $status -ne 127 ]; then
			bad="$bad $n: status $status"
		elif grep -Eq -- "$wanted" "$tap_dir/out"; then
			:
		elif [ ! -s "$tap_dir/err" ]; then
			bad="$bad $n: status $status, neither answer nor error"
		elif [ $status -eq 0 ]; then
			bad="$bad $n: status 0 without an answer"
		fi
	done
	is "$name: 3 to 64 descriptors" "$bad" ""
	like "$name: the answer is there in the end" "$(cat "$tap_dir/out")" "$wanted"
}
judge classify runner_failed "$SANDWITNESS" classify --json --backend bwrap --exit 1 "$tap_dir/in"
judge explain runner_failed "$SANDWITNESS" explain --backend bwrap --exit 1 "$tap_dir/in"
judge report 'invocations' "$SANDWITNESS" report --db "$db"
judge verify 'intact' "$SANDWITNESS" verify --db "$db"
judge export '"table":"head"' "$SANDWITNESS" export --db "$db"
judge run '^ran$' "$SANDWITNESS" run --db "$tap_dir/run.db" -- sh -c 'echo ran'
# where not even the key file could be opened at the start, it is made later: seal --rotate-key
"$SANDWITNESS" verify --db "$tap_dir/run.db" >"$tap_dir/out" 2>&1
like "after all that the trail of run is intact" "$(out)" '^intact'

# No process: as a user who has reached the limit (root has none).
as=
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	cp "$SANDWITNESS" "$tap_dir/sw"
	chmod 755 "$tap_dir" "$tap_dir/sw"
	mkdir -m 777 "$tap_dir/nobody"
	uid=$((60000 + $$ % 5000)) # who has no other processes
	as="setpriv --reuid=$uid --regid=$uid --clear-groups env HOME=$tap_dir/nobody XDG_STATE_HOME=$tap_dir/nobody XDG_CONFIG_HOME=$tap_dir/nobody"
	timeout 20 prlimit --nproc=1 $as "$tap_dir/sw" run --audit=off -- sh -c 'echo ran' >"$tap_dir/out" 2>"$tap_dir/err"
	status=$?
	if [ "$(out)" = ran ]; then
		skip "no process left: run" "the limit does not hold here"
	else
		is "no process left: run refuses" $status 125
		like "no process left: it says why" "$(err)" 'temporarily unavailable|process'
	fi
fi

# No room: the trail on a full file system of its own, and output to a full device.
"$SANDWITNESS" run --audit=off --json -- true >/dev/full 2>"$tap_dir/err"
is "no room for the answer: the status stays the command's" $? 0
like "no room for the answer: run says so" "$(err)" 'No space left'
"$SANDWITNESS" classify --json --backend bwrap --exit 1 "$tap_dir/in" >/dev/full 2>"$tap_dir/err"
is "no room for the answer: classify ends with 2" $? 2
like "no room for the answer: and says so" "$(err)" 'No space left'
(
	ulimit -f 16
	yes '{"backend":"bwrap","exit":1,"output":"bwrap: no\n","keep_output":true}' | head -n 3000 |
		timeout 60 "$SANDWITNESS" record --db "$tap_dir/small.db" >"$tap_dir/out" 2>"$tap_dir/err"
	echo $? >"$tap_dir/status"
)
isnt "a trail that may not grow: record fails" "$(cat "$tap_dir/status")" 0
isnt "a trail that may not grow: and says so" "$(err | wc -c)" 0
"$SANDWITNESS" verify --db "$tap_dir/small.db" >"$tap_dir/out" 2>"$tap_dir/err"
like "a trail that may not grow: what is there is intact or refused as empty" "$(out)$(err)" 'intact|nothing has been recorded|empty|no audit trail'

# A reader that is slow: every byte arrives.
"$SANDWITNESS" run --audit=off -- sh -c 'yes 0123456789abcde | head -c 4000000' 2>/dev/null | (sleep 1; wc -c >"$tap_dir/n")
is "a full pipe and a slow reader: every byte" "$(cat "$tap_dir/n")" 4000000
done_testing
