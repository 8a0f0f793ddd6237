#!/usr/bin/env bash
# kill -9 at random instants while four processes write: soak_kill.sh [ROUNDS, 500]
. "$(dirname "$0")/../tap.sh"
: "${STORE_BENCH:=$SW_BUILD_DIR/tests/store/store_bench}"
rounds=${1:-500}
[ -x "$STORE_BENCH" ] || skip_all "store_bench is not built"
mkdir "$tap_dir/kill"
succeeds "$rounds kills: nothing acknowledged is lost, every chain verifies" \
	"$STORE_BENCH" kill "$tap_dir/kill" "$rounds" "${2:-$RANDOM}"
like "work was done" "$(out)" "[1-9][0-9]* acknowledged, 0 wrong"
sed 's/^/# /' "$tap_dir/out"
done_testing
