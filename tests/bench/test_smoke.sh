#!/usr/bin/env bash
# The benchmarks run and find what they measure; how fast they were is no matter of a test.
. "$(dirname "$0")/../tap.sh"
succeeds "scripts/bench --quick" python3 "$SW_SOURCE_DIR/scripts/bench" --quick
like "it measured" "$(cat "$tap_dir/out")" '"ratio_build_log": 0\.[0-9]+.*"cold_ratio": [0-9]'
done_testing
