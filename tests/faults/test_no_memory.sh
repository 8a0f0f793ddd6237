# Memory runs out in `run` after its command began, at one allocation after another: what is told
# and what is on record is then whole or an error, and never says that nothing was executed.
. "$(dirname "$0")/../tap.sh"
cd "$tap_dir" || exit 1
mkdir verdicts
lines='i=0; while [ $i -lt 100 ]; do echo "touch: cannot touch /etc/x$i: Read-only file system"; i=$((i+1)); done'

# AFTER [TIMES]: status in $status, files err, out, verdict; every allocation or that many fail
starved() {
	rm -f now verdict
	timeout 60 env SW_NO_MEMORY="$tap_dir/now" SW_NO_MEMORY_AFTER="$1" ${2:+SW_NO_MEMORY_TIMES="$2"} \
		LD_PRELOAD="$SW_NO_MEMORY_LIB" "$SANDWITNESS" run --db t.db --verdict-file verdict \
		--backend bwrap -- sh -c 'echo >now; '"$lines; exit 4" >out 2>err
	status=$?
}

starved 1000000
is "with memory: the command's status" "$status" 4
like "with memory: the verdict" "$(cat verdict)" '"verdict":"sandbox_denied"'
cp verdict whole
total=$(wc -l <out)
is "with memory: all of the output" "$total" 100

# Where the end is: what has all it needs gives the verdict.
need=0
for n in 250 500 1000 2000 4000 8000; do
	starved $n
	[ -e verdict ] && need=$n && break
done
isnt "with enough allocations there is a verdict" $need 0
step=${SW_NO_MEMORY_STEP:-23}

sweep() { # NAME [TIMES]
	local n bad= judged=0 unjudged=0 unrecorded=0
	for ((n = 0; n <= need; n += step)); do
		starved $n ${2:+"$2"}
		[ "$(wc -l <out)" = 100 ] || bad="$bad $n: output lost;"
		if grep -q 'nothing was executed' err; then bad="$bad $n: says that nothing ran;"; fi
		if grep -qE '^sandwitness: *$' err; then bad="$bad $n: an empty message;"; fi
		case $status in
		4)
			judged=$((judged + 1))
			[ -e verdict ] || grep -q 'could not be written' err || bad="$bad $n: no verdict and not a word;"
			;;
		125)
			if grep -q 'could not be judged' err; then
				unjudged=$((unjudged + 1))
			elif grep -q 'could not be recorded' err; then
				unrecorded=$((unrecorded + 1))
			else
				bad="$bad $n: no reason;"
			fi
			;;
		*) bad="$bad $n: status $status;" ;;
		esac
		[ ! -e verdict ] || cp verdict "verdicts/$1.$n"
	done
	is "$1: every end is told" "$bad" ""
	isnt "$1: there were runs that could not be judged" $unjudged 0
	isnt "$1: there were runs that could not be recorded" $unrecorded 0
	[ -n "${2:-}" ] || isnt "$1: there were runs with all they need" $judged 0
	"$SANDWITNESS" verify --db t.db >out 2>&1
	like "$1: the trail is intact" "$(cat out)" '^intact'
}
sweep "none left"
sweep "one fails" 1
sweep "three fail" 3

# A verdict that was written says what it says with memory.
is "no verdict lacks a member" "$(python3 - whole verdicts/* <<'P'
import json, sys
changing = {"id", "run", "level", "invocation"}
def told(path):
    o = json.load(open(path))
    return {k: v for k, v in o.items() if k not in changing}, set(o), set(o.get("run", {}))
whole = told(sys.argv[1])
for path in sys.argv[2:]:
    o = json.load(open(path))
    if o["verdict"] is None:
        continue
    if told(path) != whole:
        print(path, [k for k in whole[0] if told(path)[0].get(k) != whole[0][k]], whole[1] ^ told(path)[1])
P
)" ""
is "no record lacks what was judged" "$("$SANDWITNESS" export --db t.db 2>&1 | python3 -c '
import json, sys
rows = map(json.loads, sys.stdin)
shapes = [(o["verdict"], o["signature"], o["cause"]) for o in rows if o.get("table") == "shape"]
print(*sorted(map(str, set(shapes))), sep="\n")')" "('sandbox_denied', 'common.erofs.path', 'write-outside-workspace')
('unfinished', None, None)"
done_testing
