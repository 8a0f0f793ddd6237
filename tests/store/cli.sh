#!/usr/bin/env bash
# The verbs of the audit trail, and the examples of docs/record.md.
. "$(dirname "$0")/../tap.sh"
export SANDWITNESS_DB=$tap_dir/t/trail.db
sw() { "$SANDWITNESS" "$@"; }
field() { python3 -c 'import json,sys
for line in sys.stdin:
    v = json.loads(line)
    for k in sys.argv[1].split("."):
        v = v[int(k)] if isinstance(v, list) else v[k]
    print(json.dumps(v) if not isinstance(v, str) else v)' "$1"; }

fails_with "no trail yet: a clear error" 1 "$SANDWITNESS" report
like "it says so" "$(err)" "no audit trail there yet"
is "and nothing was created" "$(ls "$tap_dir/t" 2>/dev/null)" ""

# every example of the manual is recorded as it stands
sed -n '/^```json/,/^```/p' "$SW_SOURCE_DIR/docs/record.md" | grep -v '^```' >"$tap_dir/examples"
is "the manual has its examples" "$(wc -l <"$tap_dir/examples")" 6
succeeds "all of them are recorded" "$SANDWITNESS" record --json "$tap_dir/examples"
is "six receipts" "$(out | grep -c '"replay":false')" 6
succeeds "again: all of them are replays" "$SANDWITNESS" record --json "$tap_dir/examples"
is "six replays" "$(out | grep -c '"replay":true')" 6

show() { sw invocations show "$1" --json | field "$2"; }
is "metnos: effective" "$(show turn-812-3 effective)" job_object
is "metnos: requested" "$(show turn-812-3 requested)" appcontainer
is "metnos: lost" "$(show turn-812-3 lost)" '["fs_write", "fs_read", "network", "ipc"]'
is "metnos: reason" "$(show turn-812-3 reason)" "scope too broad for safe ACL changes"
is "mecha: basis" "$(show run-17-call-4 basis)" derived
like "mecha: network is lost" "$(show run-17-call-4 lost)" '"network"'
unlike "mecha: fs_write is not" "$(show run-17-call-4 lost)" '"fs_write"'
is "mecha: verdict" "$(show run-17-call-4 verdict)" sandbox_denied
is "mecha: resource" "$(show run-17-call-4 resource)" /etc/x
is "nous: verdict" "$(show agent-5-tool-9 verdict)" runner_failed
is "nous: stage" "$(show agent-5-tool-9 stage)" setup
is "begin and end: verdict" "$(show job-1 verdict)" runner_failed
is "refused: verdict" "$(show job-2 verdict)" sandbox_unavailable

# a conflict, a broken line, and the rest goes on
printf '%s\n' '{"id":"job-2","backend":"bwrap","exit":0}' 'not json' '{"id":"fine","backend":"none","exit":0}' >"$tap_dir/mixed"
fails_with "some refused" 1 "$SANDWITNESS" record --json "$tap_dir/mixed"
is "the conflict is one" "$(out | sed -n 1p | field conflict)" true
like "the broken line is named" "$(out | sed -n 2p)" '"line":2,"error"'
is "the good one is recorded" "$(out | sed -n 3p | field id)" fine

# what classify prints can be recorded as it is
printf 'bwrap: setting up uid map: Permission denied\n' |
	sw classify --backend bwrap --exit 1 --json >"$tap_dir/verdict"
succeeds "the output object is a record" "$SANDWITNESS" record --json "$tap_dir/verdict"
id=$(out | field id)
is "with its verdict" "$(show "$id" cause)" userns-uid-map-denied
like "with a UUIDv7 of its own" "$id" '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab]'

# lists and reports
is "newest first" "$(sw invocations --json --limit 1 | field id)" "$id"
is "one object per line" "$(sw invocations --json | wc -l)" 7
is "a filter" "$(sw invocations --json --verdict runner_failed --backend docker | field id)" job-1
is "label, session, time" "$(sw invocations --json --session run-17 --since 1h | field id)" run-17-call-4
fails_with "an unknown verdict" 1 "$SANDWITNESS" invocations --verdict fine
fails_with "an unknown report" 1 "$SANDWITNESS" report nosuch
for r in summary verdicts downgrades unexplained violations failures denials levels backends causes signatures sessions devices unfinished; do
	succeeds "report $r" "$SANDWITNESS" report $r
	like "report $r names the head" "$(out | tail -n 1)" '^-- head [0-9]+:[0-9a-f]{64}, sealed up to [0-9]+$'
	is "report $r as JSON" "$(sw report $r --json | field report)" $r
	is "report $r as CSV has its columns" "$(sw report $r --csv | head -n 1 | tr -d '\r' | tr , '\n' | wc -l)" \
		"$(sw report $r --json | python3 -c 'import json,sys; print(len(json.load(sys.stdin)["columns"]))')"
done
tap_run "$SANDWITNESS" report failures
is "advice once per cause" "$(out | grep -c '^userns-uid-map-denied$')" 1
like "denials ranks the path" "$(sw report denials)" '/etc/x +path +write +1'
summary=$(sw report summary --json)
is "the summary counts" "$(printf '%s\n' "$summary" | field rows.0.value)" 7

# hostile text on a terminal
printf '%s\n' '{"id":"hostile","backend":"none","exit":0,"session":"a\u001b[31mb\u202ec","command":["x\u0007y"]}' |
	sw record >/dev/null
for verb in "report sessions" "invocations" "invocations show hostile"; do
	is "$verb: escaped" "$(sw $verb | LC_ALL=C grep -c "$(printf '\033')\|$(printf '\007')")" 0
done
# a spreadsheet does not run it
printf '%s\n' '{"id":"formula","backend":"none","exit":0,"session":"=cmd()","actor":"say \"hi\", you"}' |
	sw record >/dev/null
like "CSV: no formula, quotes doubled" "$(sw export --csv | grep '^formula')" ",\"'=cmd\(\)\",\"say \"\"hi\"\", you\""

# verify, seal, anchor, export, backup
fails_with "not sealed yet" 3 "$SANDWITNESS" verify
anchor=$(sw report summary | sed -n 's/^-- head \([0-9]*:[0-9a-f]*\),.*/\1/p')
succeeds "sealed" "$SANDWITNESS" seal
succeeds "intact" "$SANDWITNESS" verify --anchor "$anchor"
succeeds "exported" "$SANDWITNESS" export --out "$tap_dir/t/e.ndjson"
is "for this user alone" "$(stat -c %a "$tap_dir/t/e.ndjson")" 600
succeeds "the export verifies by itself" "$SANDWITNESS" verify "$tap_dir/t/e.ndjson" --anchor "$anchor"
succeeds "with the pinned key too" "$SANDWITNESS" verify "$tap_dir/t/e.ndjson" --public-key "$SANDWITNESS_DB.pub"
sed 's/job_object/bwrap_full/' "$tap_dir/t/e.ndjson" >"$tap_dir/t/f.ndjson"
fails_with "an edited export" 20 "$SANDWITNESS" verify "$tap_dir/t/f.ndjson"
fails_with "never over another file" 1 "$SANDWITNESS" backup "$tap_dir/t/e.ndjson"
succeeds "backup" "$SANDWITNESS" backup "$tap_dir/t/copy.db"
is "the copy is private" "$(stat -c %a "$tap_dir/t/copy.db")" 600
succeeds "the copy verifies" "$SANDWITNESS" verify "$tap_dir/t/copy.db" --anchor "$anchor"
# killed half-way, nothing has the name of a copy
for verb in "backup" "export --out"; do
	rm -f "$tap_dir/t/half"
	tap_run bash -c "ulimit -f 16; exec \"$SANDWITNESS\" $verb \"$tap_dir/t/half\""
	isnt "$verb: a limit ends it" "$?" 0
	is "$verb: no half file" "$(ls "$tap_dir/t/half" 2>/dev/null)" ""
done
rm -f "$tap_dir/t"/half.*.tmp
# what is not a file is not waited for, and is named
mkfifo "$tap_dir/t/pipe" "$tap_dir/t/pipe.ndjson"
for where in "" -journal -wal -shm .lock; do
	mkdir -p "$tap_dir/t/odd"
	cp "$tap_dir/t/copy.db" "$tap_dir/t/odd/x.db"
	rm -f "$tap_dir/t/odd/x.db$where"
	mkfifo "$tap_dir/t/odd/x.db$where"
	fails_with "a pipe as x.db$where" 2 timeout 10 "$SANDWITNESS" verify "$tap_dir/t/odd/x.db"
	like "it is named" "$(err)" "x.db$where: .*it is a pipe"
	rm -rf "$tap_dir/t/odd"
done
for pin in "$tap_dir/t/pipe" /etc /dev/zero; do
	fails_with "$pin as a public key" 2 timeout 10 "$SANDWITNESS" verify "$tap_dir/t/copy.db" --public-key "$pin"
	like "it says what it is" "$(err)" 'it is a (pipe|folder|device)'
done
fails_with "a pipe as an export" 2 timeout 10 "$SANDWITNESS" verify "$tap_dir/t/pipe.ndjson"
tap_run bash -c "exec \"$SANDWITNESS\" record <&-"
is "record without stdin fails" "$?" 2
tap_run bash -c "echo '{\"backend\":\"none\",\"exit\":0}' | \"$SANDWITNESS\" record --db \"$tap_dir/t/noout.db\" >&-"
is "without stdout too" "$?" 2
succeeds "what it would have printed is not in the lock file" "$SANDWITNESS" seal --db "$tap_dir/t/noout.db"
succeeds "the key is changed" "$SANDWITNESS" seal --rotate-key
succeeds "intact with the new key" "$SANDWITNESS" verify
head -c 4096 /dev/zero | tr '\0' x | dd of="$tap_dir/t/copy.db" bs=4096 seek=8 conv=notrunc 2>/dev/null
tap_run "$SANDWITNESS" verify "$tap_dir/t/copy.db"
status=$?
like "a damaged copy" "$status" '^(20|21|22|24)$'

# a trail that cannot be opened any more is judged, not given up
succeeds "another copy" "$SANDWITNESS" backup "$tap_dir/t/copy2.db"
python3 - "$tap_dir/t/copy2.db" <<'P'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.executescript("pragma writable_schema=on; update sqlite_schema set sql='junk' where name='kept'")
P
fails_with "a damaged schema is a finding" 20 "$SANDWITNESS" verify "$tap_dir/t/copy2.db"
like "it says what" "$(out)" 'changed +the audit trail is damaged'
: >"$tap_dir/t/copy3.db"
fails_with "an emptied file too" 21 "$SANDWITNESS" verify "$tap_dir/t/copy3.db"
fails_with "a path where nothing is, is a mistake" 1 "$SANDWITNESS" verify "$tap_dir/t/nothing.db"

# reclassify, and a case from a record
tap_run "$SANDWITNESS" reclassify --since 1h
like "kept outputs are looked at" "$(out)" '^1 kept outputs looked at, 0 would be judged differently'
mkdir -p "$tap_dir/packs"
cat >"$tap_dir/packs/bwrap.yaml" <<'P'
schema: 1
backend: bwrap
denial:
  - id: bwrap.test.mine
    literal: 'Read-only file system'
    regex: "cannot touch '(?<path>[^']+)': Read-only file system"
    operation: write
    cause: write-outside-workspace
    confidence: certain
    samples: ["touch: cannot touch '/etc/x': Read-only file system"]
    near_misses: ['Read-only']
P
tap_run "$SANDWITNESS" reclassify --since 1h --signatures "$tap_dir/packs" --json
like "another pack judges differently" "$(out)" '"signature":\{"was":"[a-z._-]*","now":"bwrap.test.mine"\}'
is "the trail is untouched" "$(sw verify --json | field findings)" "[]"
succeeds "a record becomes a case" "$SANDWITNESS" reclassify --to-corpus run-17-call-4 --dir "$tap_dir/corpus"
succeeds "and the case is right" "$SANDWITNESS" corpus check "$tap_dir/corpus"
fails_with "not without its output" 1 "$SANDWITNESS" reclassify --to-corpus job-1 --dir "$tap_dir/corpus"

# retention
tap_run "$SANDWITNESS" prune --older-than 0s --dry-run --json
isnt "a dry run finds something" "$(out | field segments)" 0
is "and removes nothing" "$(sw invocations --json | wc -l)" 9
succeeds "pruned" "$SANDWITNESS" prune --older-than 0s --why "test" --compact
is "nothing is left" "$(sw invocations --json | wc -l)" 0
fails_with "the gap is intact, the prune row not sealed yet" 3 "$SANDWITNESS" verify
like "and named" "$(out)" 'rows 1 to [0-9]+ were pruned'
succeeds "sealed again" "$SANDWITNESS" verify --seal
fails_with "prune needs a rule" 1 "$SANDWITNESS" prune
done_testing
