#!/usr/bin/env bash
# classify, explain, signatures: answers, bad input, exit statuses, long inputs in constant memory.
. "$(dirname "$0")/../tap.sh"
uidmap='bwrap: setting up uid map: Permission denied'
classify() { "$SANDWITNESS" classify "$@"; }
feed() { # TEXT ARGS...: classify --json of the text
	local text=$1
	shift
	printf '%s' "$text" | classify --json "$@" >"$tap_dir/out" 2>"$tap_dir/err"
}
field() { jq -r "$1" "$tap_dir/out"; }

# ---- what must be shown ----
feed "$uidmap" --backend bwrap --exit 1
is "uid map refused: runner_failed" "$(field .verdict)" runner_failed
is "with a user-namespace cause" "$(field .cause)" userns-uid-map-denied
like "with the AppArmor advice" "$(field '.advice | tostring')" '[Aa]pp[Aa]rmor'
is "and its line" "$(field .line)" "$uidmap"
feed "$uidmap" --backend bwrap --exit 0
is "the same at exit 0 is ok" "$(field .verdict)" ok
feed " $uidmap" --backend bwrap --exit 1
is "with a leading blank it is not fatal" "$(field .verdict)" ok
feed $'running tests\n'"$uidmap"$'\n1 failed\n' --backend bwrap --exit 1
is "quoted in mid-output it is not fatal" "$(field .verdict)" ok
feed "touch: cannot touch '/etc/x': Read-only file system" --backend bwrap --exit 1
is "a refused write is sandbox_denied" "$(field '.verdict + " " + .resource + " " + .operation')" "sandbox_denied /etc/x write"
feed '' --backend bwrap --exit 1 --started no
is "not started with empty output is runner_failed" "$(field '.verdict + " " + .evidence')" "runner_failed attested"
feed '' --backend bwrap --exit 159
is "exit 159 is sandbox_denied" "$(field .verdict)" sandbox_denied
feed '' --backend bwrap --signal SYS
is "so is the signal" "$(field .verdict)" sandbox_denied
mkdir "$tap_dir/packs"
cat >"$tap_dir/packs/box.yaml" <<'EOF'
schema: 1
backend: box
title: A box made for this test
runner: {names: [box], prefixes: ['box: ']}
fatal:
  - id: box.apply
    literal: 'box: apply'
    cause: unknown
    samples: ['box: apply: Invalid argument']
    near_misses: ['x box: apply']
denial:
  - id: box.apply-denied
    literal: 'apply: Operation not permitted'
    scope: any
    operation: privilege
    cause: privilege-refused
    samples: ['box: apply: Operation not permitted']
    near_misses: ['apply: fine']
EOF
feed 'box: apply: Operation not permitted' --backend box --exit 1 --signatures "$tap_dir/packs"
is "a line that is both is a denial" "$(field '.verdict + " " + .signature')" "sandbox_denied box.apply-denied"
feed 'box: apply: Invalid argument' --backend box --exit 1 --signatures "$tap_dir/packs"
is "and the other way a failure" "$(field '.verdict + " " + .signature')" "runner_failed box.apply"

# ---- fields and forms ----
feed $'\xff\xfe bwrap\n'"bwrap: No such \xff" --backend bwrap --exit 1
is "JSON stays JSON with bytes that are no UTF-8" "$(field .schema)" 1
keys=$(field 'keys_unsorted | join(" ")')
for key in schema backend exit verdict stage cause confidence evidence started rule signature line line_number offset \
	operation resource denied_lines limit downgrades mode enforcement advice observations faults; do
	like "the object has $key" " $keys " " $key "
done
fails_with "--exit-code 10" 10 bash -c "echo '$uidmap' | '$SANDWITNESS' classify --backend bwrap --exit 1 --exit-code"
fails_with "--exit-code 11" 11 bash -c "echo 'x: Read-only file system' | '$SANDWITNESS' classify --backend bwrap --exit 1 --exit-code"
succeeds "--exit-code 0 for ok" bash -c "echo x | '$SANDWITNESS' classify --backend bwrap --exit 1 --exit-code"
echo "$uidmap" >"$tap_dir/file"
succeeds "a file" classify --backend bwrap --exit 1 "$tap_dir/file"
is "one line for a person" "$(out | wc -l)" 1
like "with the verdict" "$(out)" '^runner_failed: '
printf 'touch: \x1b[2Jcannot touch /x: Read-only file system\n' >"$tap_dir/hostile"
tap_run classify --backend bwrap --exit 1 "$tap_dir/hostile"
unlike "no escape reaches a terminal" "$(out)" $'\x1b'

# ---- bad input ----
bad() { # NAME STATUS REGEX ARGS...
	local name=$1 status=$2 regex=$3
	shift 3
	fails_with "$name" "$status" classify "$@" </dev/null
	like "$name: says what is known" "$(err)" "$regex"
}
bad "an unknown backend" 1 'nosuch.*|known: .*bwrap' --backend nosuch --exit 1
bad "no backend" 1 'backend' --exit 1
bad "no exit" 1 'exit' --backend bwrap
bad "an exit out of range" 1 '4294967295|range' --backend bwrap --exit 4294967296
bad "an exit that is no number" 1 'exit|soon' --backend bwrap --exit soon
bad "signal with exit" 1 'signal' --backend bwrap --exit 1 --signal 9
bad "an unknown signal" 1 'NOSUCH|signal' --backend bwrap --signal NOSUCH
bad "an unknown fact" 1 'maybe|network' --backend bwrap --exit 1 --network maybe
bad "an unknown option" 1 'colour' --backend bwrap --exit 1 --colour
bad "a missing file" 2 'no-such-file' --backend bwrap --exit 1 "$tap_dir/no-such-file"
bad "a missing signatures folder" 1 'no-such-dir' --backend bwrap --exit 1 --signatures "$tap_dir/no-such-dir"
bad "an unknown pack set" 1 'nosuch|compat-nous' --backend bwrap --exit 1 --pack-set nosuch
printf 'schema: 1\nbackend: bwrap\nfatal: [{id: x, literal: abc\n' >"$tap_dir/packs/broken.yaml"
tap_run classify --backend bwrap --exit 1 --signatures "$tap_dir/packs" "$tap_dir/file"
is "a broken user pack leaves the others" "$?" 0
like "the verdict is still right" "$(out)" '^runner_failed: '
like "the broken pack is named with line and column" "$(err)" 'broken\.yaml:[0-9]+:[0-9]+'

# ---- stdin is read from where it stands ----
printf '%s\n%s\n' "$uidmap" 'all done' >"$tap_dir/two"
{ read -r _ && "$SANDWITNESS" classify --backend bwrap --exit 1 --json >"$tap_dir/out"; } <"$tap_dir/two"
is "what was read before is not classified again" "$(field '.verdict + " " + (.observations | length | tostring)')" "ok 0"

# ---- near misses that cost a backtracking matcher the square of the line ----
d=' permission denied operation not permitted read-only file system'
for unit in '=/' ' /a' '=a/' '=./' "a: 'a"; do
	unit=$unit awk -v d="$d" 'BEGIN { u = ENVIRON["unit"]; for (i = 0; i < 700; i++) l = l u; for (i = 0; i < 200; i++) print l d }' >"$tap_dir/slow"
	(ulimit -t 10 && "$SANDWITNESS" classify --backend bwrap --exit 1 --json <"$tap_dir/slow" >"$tap_dir/out")
	is "a pipe of '$unit' is decided within seconds" "$? $(field '.verdict + " " + (.faults | length | tostring)')" "0 ok 0"
done

# ---- batch ----
cat >"$tap_dir/batch" <<'EOF'
{"id":"a","backend":"bwrap","exit":1,"output":"bwrap: setting up uid map: Permission denied\n"}
not json at all
{"id":"c","backend":"nosuch","exit":1,"output":""}
{"id":"d","backend":"bwrap","exit":1,"signal":9,"output":""}
{"id":"e","backend":"bwrap","output":"x"}
{"id":"f","backend":"bwrap","exit":1,"output_b64":"***"}
{"id":"g","backend":"bwrap","exit":99999999999,"output":""}
{"id":"h","backend":"bwrap","signal":31,"output_b64":""}
{"id":"i","backend":"bwrap","exit":1,"output":"touch: cannot touch '/etc/x': Read-only file system\n","mode":"workspace_write","network":"denied","writable_roots":["/w"],"cwd":"/w"}
EOF
classify --batch <"$tap_dir/batch" >"$tap_dir/out" 2>"$tap_dir/err"
is "batch: one answer a line" "$(wc -l <"$tap_dir/out")" 9
is "batch: same order" "$(jq -r '.id // "-"' "$tap_dir/out" | tr '\n' ' ')" "a - c d e f g h i "
is "batch: good lines answered, bad ones explained" "$(jq -r 'if .verdict then .verdict else "error" end' "$tap_dir/out" | tr '\n' ' ')" \
	"runner_failed error error error error error error sandbox_denied sandbox_denied "
is "batch: every error says something" "$(jq -r 'select(.error) | .error | length > 5' "$tap_dir/out" | sort -u)" true

{
	printf '%s\n' '{"id":"a","backend":"bwrap","exit":1,"output":"x"}'
	head -c 200000000 /dev/zero | tr '\0' x
	printf '\n%s\n' '{"id":"z","backend":"bwrap","exit":1,"output":"x"}'
} | ([ -n "${ASAN_BUILD:-}" ] || ulimit -v 400000; classify --batch) >"$tap_dir/out" 2>"$tap_dir/err"
is "batch: a line over the limit is refused in bounded memory, the rest goes on" "$(jq -r '.verdict // .error' "$tap_dir/out" | tr '\n' '|')" \
	"ok|input line 2: more than 67108864 bytes|ok|"
while read -r key value; do
	printf '{"backend":"bwrap","exit":1,"%s":%s}\n' "$key" "$value" | classify --batch >"$tap_dir/out" 2>"$tap_dir/err"
	like "batch: an error names the field $key" "$(field .error)" "^$key: "
done <<'EOF'
mode "x"
started "x"
network "x"
enforcement "x"
cwd "x"
writable_roots ["x"]
accessible ["x"]
EOF
printf '{"backend":"bwrap","signal":"FOO"}\n' | classify --batch >"$tap_dir/out" 2>"$tap_dir/err"
like "batch: an error names the field signal" "$(field .error)" '^signal: '
classify --batch <&- >"$tap_dir/out" 2>"$tap_dir/err"
is "batch: a closed stdin is an error" $? 2
like "and says so" "$(cat "$tap_dir/err")" 'cannot read'

# ---- size ----
peak() { # KiB of resident memory that classify needed for stdin
	python3 -c 'import resource,subprocess,sys
subprocess.run(sys.argv[1:], stdin=0, stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$SANDWITNESS" classify --backend bwrap --exit 1
}
mib=${SW_TEST_STREAM_MIB:-1024}
limit=65536
[ -z "${ASAN_BUILD:-}" ] || limit=1048576
small=$(echo "$uidmap" | peak)
big=$({ yes 'cc -O2 -c file.c -o file.o: nothing special here, and then some more' | head -c $((mib * 1024 * 1024)); echo; } | peak)
echo "# peak memory: one line $small KiB, $mib MiB $big KiB"
if [ "$big" -lt $((small + limit)) ]; then pass "$mib MiB in constant memory"; else fail "$mib MiB in constant memory" "$big KiB"; fi
long=$({ printf 'start '; head -c 67108864 /dev/zero | tr '\0' 'x'; echo "touch: '/etc/x': Read-only file system"; } | peak)
echo "# peak memory for a line of 64 MiB: $long KiB"
if [ "$long" -lt $((small + limit)) ]; then pass "a line of 64 MiB in constant memory"; else fail "a line of 64 MiB" "$long KiB"; fi
{ printf 'start '; head -c 67108864 /dev/zero | tr '\0' 'x'; echo "touch: cannot touch '/etc/x': Read-only file system"; } |
	classify --backend bwrap --exit 1 --json >"$tap_dir/out"
is "its end is matched too" "$(field '.verdict + " " + .resource')" "sandbox_denied /etc/x"
is "and reported by its beginning" "$(field '.line_truncated')" true
done_testing
