#!/usr/bin/env bash
# The corpus is right, and `sandwitness corpus` says so or says what is wrong.
. "$(dirname "$0")/../tap.sh"
corpus=$SW_SOURCE_DIR/corpus
field() { jq -r "$1" "$tap_dir/out"; }

# ---- the corpus of the repository ----
succeeds "corpus check is all right" "$SANDWITNESS" corpus check "$corpus" --json
is "no case is wrong" "$(field '.wrong')" 0
is "no case file is broken" "$(field '.broken')" 0
is "no todo case passes" "$(field '."todo-passes"')" 0
is "each todo case has its reason" "$(grep -l '^state: todo' "$corpus"/*/*.yaml | xargs grep -L '^reason: ' | wc -l)" 0
is "more than 1200 cases" "$(field '(.cases | length) > 1200')" true
is "at least 17 % expect ok" "$(field '([.backends[].negative] | add) * 100 >= ([.backends[].cases] | add) * 17')" true
is "at least 60 causes have a case" "$(field '[.causes[] | select(.cases > 0)] | length >= 60')" true
is "at least 80 % of the signatures are exercised by a case" \
	"$(field '([.signatures[] | select(.cases > 0)] | length) * 100 >= (.signatures | length) * 80')" true
is "no other case called runner_failed" "$(field '[.backends[].confusion | .ok.runner_failed, .sandbox_denied.runner_failed] | add')" 0
is "every backend with 20 cases is right in 96 % of all, todo included" \
	"$(field '[.backends[] | select(.cases >= 100) | select((.right + .todo) * 100 < .cases * 96) | .backend] | join(" ")')" ""
for what in line:98 stage:97 cause:90 resource:95; do
	is "${what%:*} agrees in ${what#*:} %" \
		"$(field "[.backends[].agreement.${what%:*} // empty] | (map(.right) | add) * 100 >= (map(.of) | add) * ${what#*:}")" true
done
# With sanitizers for the cases of one backend; the release build tries all.
some=() many=100000
[ -z "${ASAN_BUILD:-}" ] || some=(--backend seatbelt) many=10000
succeeds "the relations that hold of every case" "$SANDWITNESS" corpus check "$corpus" "${some[@]}" --metamorphic --json
is "none is broken" "$(field '.metamorphic_broken')" 0
is "many were tried" "$(field ".metamorphic > $many")" true

# ---- the forms of the report ----
succeeds "TAP" "$SANDWITNESS" corpus check "$corpus" --backend bwrap --tap
is "TAP: as many tests as planned" "$(sed -n 's/^1\.\.//p' "$tap_dir/out")" "$(grep -cE '^(not )?ok ' "$tap_dir/out")"
succeeds "JUnit" "$SANDWITNESS" corpus check "$corpus" --backend docker --junit "$tap_dir/junit.xml" --json
is "JUnit is XML with every case" \
	"$(python3 -c 'import sys,xml.etree.ElementTree as e; print(len(e.parse(sys.argv[1]).findall(".//testcase")))' "$tap_dir/junit.xml")" \
	"$(field '.cases | length')"
succeeds "for people" "$SANDWITNESS" corpus check "$corpus" --backend bwrap
like "a confusion matrix" "$(out)" 'confusion \(rows wanted, columns got\)'
like "signatures never exercised" "$(out)" 'signatures exercised by a case: [0-9]+ of [0-9]+'
like "causes without a case" "$(out)" 'causes with a case: [0-9]+ of [0-9]+'

# ---- what is wrong is said, and everything else still checked ----
bad=$tap_dir/bad/bwrap
mkdir -p "$bad"
write() { printf '%s' "$2" >"$bad/$1.out"; printf '%s\n' "$3" >"$bad/$1.yaml"; }
prov='provenance: {kind: synthetic}'
write right "bwrap: setting up uid map: Permission denied
" "exit: 1
expect: {verdict: runner_failed, line: 'bwrap: setting up uid map: Permission denied'}
$prov"
write wrong 'all fine' "exit: 1
expect: {verdict: sandbox_denied}
$prov"
write known 'all fine' "exit: 1
expect: {verdict: sandbox_denied}
state: todo
reason: nothing is printed
$prov"
write passes 'all fine' "exit: 1
expect: {verdict: ok}
state: todo
reason: was wrong once
$prov"
write noreason x "exit: 1
expect: {verdict: ok}
state: todo
$prov"
write unknown x "exit: 1
colour: blue
expect: {verdict: ok}
$prov"
write noverdict x "exit: 1
$prov"
write twice x "exit: 1
exit: 2
expect: {verdict: ok}
$prov"
write alias x "exit: 1
expect: &a {verdict: ok}
corrected: *a
$prov"
printf 'exit: 1\nexpect: {verdict: ok}\n%s\n' "$prov" >"$bad/noout.yaml"
fails_with "something wrong: exit 10" 10 "$SANDWITNESS" corpus check "$tap_dir/bad" --json
is "all files were looked at" "$(field '.cases | length')" 10
is "right" "$(field '.right')" 1
is "wrong" "$(field '.wrong')" 1
is "a known miss is no failure" "$(field '.todo')" 1
is "a known miss that passes is an error" "$(field '."todo-passes"')" 1
is "broken files" "$(field '.broken')" 6
like "an unknown key is named" "$(field '.cases[].detail')" 'colour: an unknown key'
like "a double key is placed" "$(field '.cases[].detail')" 'twice\.yaml:2:1: a key stands here twice'
like "a missing .out is named" "$(field '.cases[].detail')" 'noout\.out'
is "the confusion matrix has the miss" "$(field '.backends[0].confusion.sandbox_denied.ok')" 1
fails_with "no such folder" 1 "$SANDWITNESS" corpus check "$tap_dir/nosuch"
fails_with "no case fits" 1 "$SANDWITNESS" corpus check "$corpus" --backend bwrap --name no-such-case
fails_with "no action" 1 "$SANDWITNESS" corpus
fails_with "unknown option" 1 "$SANDWITNESS" corpus check --colour

# ---- add, capture, import ----
new=$tap_dir/new
printf 'bwrap: setting up uid map: Permission denied \377\n' >"$tap_dir/capture"
succeeds "add" "$SANDWITNESS" corpus add "$tap_dir/capture" --dir "$new" --backend bwrap --exit 1 --network denied --name 'Uid map!'
like "add says where" "$(out)" "^$new/bwrap/uid-map\.yaml"
is "the bytes are kept" "$(cksum <"$new/bwrap/uid-map.out")" "$(cksum <"$tap_dir/capture")"
succeeds "what was added checks" "$SANDWITNESS" corpus check "$new"
fails_with "add does not overwrite" 1 "$SANDWITNESS" corpus add "$tap_dir/capture" --dir "$new" --backend bwrap --exit 1 --name 'Uid map!'
succeeds "but with --replace" "$SANDWITNESS" corpus add "$tap_dir/capture" --dir "$new" --backend bwrap --exit 1 --name 'Uid map!' --replace --expect runner_failed --cause userns-uid-map-denied
like "the expectation is the caller's" "$(cat "$new/bwrap/uid-map.yaml")" 'cause: userns-uid-map-denied'
fails_with "add without an exit" 1 "$SANDWITNESS" corpus add "$tap_dir/capture" --dir "$new" --backend bwrap --name x
fails_with "add to an unknown backend" 1 "$SANDWITNESS" corpus add "$tap_dir/capture" --dir "$new" --backend nosuch --exit 1 --name x
if bwrap --ro-bind / / --unshare-all true 2>/dev/null; then
	succeeds "capture" "$SANDWITNESS" corpus capture --dir "$new" --name no-source -- bwrap --ro-bind /no/such /x true
	like "capture keeps the command" "$(cat "$new/bwrap/no-source.yaml")" 'command: \[bwrap'
	like "capture keeps the runner's version" "$(cat "$new/bwrap/no-source.yaml")" 'runner: "bubblewrap'
	like "capture expects what was seen" "$(cat "$new/bwrap/no-source.yaml")" 'cause: mount-source-missing'
	succeeds "what was captured checks" "$SANDWITNESS" corpus check "$new"
else
	skip "capture" "bwrap cannot build a sandbox here"
fi
cat >"$tap_dir/rows" <<'EOF'
{"id":"Row-1","backend":"bwrap","exit":1,"output":"bwrap: setting up uid map: Permission denied\n","truth":"runner_failed","expect":"runner_failed","cause":"uid map","line":"bwrap: setting up uid map: Permission denied","provenance":"captured"}
{"id":"row-1","backend":"bwrap","exit":1,"output_b64":"//4=","truth":"command_failed","expect":"ok","provenance":"synthetic"}
{"id":"row-2","backend":"bwrap","exit":1,"output":"","truth":"sandbox_denied","expect":"sandbox_denied","undecidable":true,"provenance":"captured"}
{"id":"row-3","backend":"nosuch","exit":1,"output":"","expect":"ok","provenance":"captured"}
not JSON
EOF
printf 'uid map\tuserns-uid-map-denied\n' >"$tap_dir/map"
fails_with "import says what it refused" 10 "$SANDWITNESS" corpus import --dir "$tap_dir/imported" --causes "$tap_dir/map" "$tap_dir/rows"
like "import counts" "$(out)" '^3 cases written .*, 1 of them todo, .* 2 lines refused'
like "refused lines have their number" "$(err)" 'rows:4: .*unknown backend'
is "names that differ in case only do not collide" "$(ls "$tap_dir/imported/bwrap" | tr '\n' ' ')" "row-1-2.out row-1-2.yaml row-1.out row-1.yaml row-2.out row-2.yaml "
succeeds "what was imported checks" "$SANDWITNESS" corpus check "$tap_dir/imported"
done_testing
