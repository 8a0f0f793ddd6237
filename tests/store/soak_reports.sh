#!/usr/bin/env bash
# Every report with every filter over N generated invocations: soak_reports.sh [N, 10000000]
# Bars: 2 seconds and 64 MiB each. Ten million take about 2.5 GB in TMPDIR and some minutes.
. "$(dirname "$0")/../tap.sh"
: "${STORE_BENCH:=$SW_BUILD_DIR/tests/store/store_bench}"
n=${1:-10000000}
[ -x "$STORE_BENCH" ] || skip_all "store_bench is not built"
succeeds "$n invocations generated" "$STORE_BENCH" generate "$tap_dir/t.db" "$n"
sed 's/^/# /' "$tap_dir/err" | tr '\r' '\n' | tail -n 1
succeeds "every report with every filter within 2 s and 64 MiB" "$STORE_BENCH" reports "$tap_dir/t.db"
like "all were run" "$(grep -c ' rows' "$tap_dir/out")" '^1[5-9][0-9]$'
sort -k4 -rn "$tap_dir/out" | head -n 5 | sed 's/^/# /'
unlike "the counts are not all zero" "$(grep '^verdicts *- ' "$tap_dir/out")" ' 0 rows'
if [ "$n" -le 1000000 ]; then
	"$SANDWITNESS" verify --db "$tap_dir/t.db" >"$tap_dir/verify" 2>&1
	is "the chain is intact and sealed" "$?" 0
fi
done_testing
