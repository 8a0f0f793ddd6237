#!/usr/bin/env bash
# Sixteen processes at once, first as long-lived writers, then as one short-lived `run` or
# `record` after the other: soak_many.sh [N, 10000]
. "$(dirname "$0")/../tap.sh"
: "${STORE_BENCH:=$SW_BUILD_DIR/tests/store/store_bench}"
n=${1:-10000}
[ -x "$STORE_BENCH" ] || skip_all "store_bench is not built"
mkdir "$tap_dir/many"
tap_run "$STORE_BENCH" many "$tap_dir/many" 16 "$n"
status=$?
sed 's/^/# /' "$tap_dir/out"
# 10: the bar on the worst wait, which a loaded machine can miss; the soak insists, ctest does not
if [ "$status" -eq 0 ] || { [ "$status" -eq 10 ] && [ "$n" -lt 10000 ]; }; then
	pass "$n records by 16 processes, each there exactly once, chain intact"
else
	fail "$n records by 16 processes" "status $status" "$(err)"
fi

export SANDWITNESS_DB=$tap_dir/cli/trail.db
each=$((n / 16))
[ "$each" -le 200 ] || [ "$n" -ge 10000 ] || each=200
worker() {
	local i
	for ((i = 0; i < each; i++)); do
		if ((i % 2)); then
			"$SANDWITNESS" run --backend none --session "s$1" -- true || echo "run failed: $?"
		else
			printf '{"id":"w%d-%d","backend":"bwrap","exit":0,"session":"s%d"}\n' "$1" "$i" "$1" |
				"$SANDWITNESS" record --json | grep -q '"replay":false' || echo "record failed"
		fi
	done
}
if "$SANDWITNESS" help run >/dev/null 2>&1; then
	for w in $(seq 16); do worker "$w" & done >"$tap_dir/said" 2>&1
	wait
	is "no process complained" "$(grep -c 'failed\|locked\|busy' "$tap_dir/said")" 0
	total=$("$SANDWITNESS" report summary --json |
		sed 's/.*"name":"invocations","value":\([0-9]*\).*/\1/')
	is "every run and record is there once" "$total" $((each * 16))
	is "none is unfinished" "$("$SANDWITNESS" report unfinished --csv | wc -l)" 1
	"$SANDWITNESS" verify --seal >"$tap_dir/verify"
	is "the chain is intact" "$?" 0
else
	skip "runs and records by processes" "no run in this build"
fi
done_testing
