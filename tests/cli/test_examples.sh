#!/usr/bin/env bash
# Every example of `sandwitness help VERB`, of README.md and of docs/ really works.
. "$(dirname "$0")/../tap.sh"
bin=$tap_dir/bin
mkdir -p "$bin" "$tap_dir/work" "$tap_dir/tmp"
ln -s "$SANDWITNESS" "$bin/sandwitness"
export PATH=$bin:$PATH TERM=dumb
cd "$tap_dir/work" || exit 1
# What the examples speak of.
ln -s "$SW_SOURCE_DIR/corpus" corpus
ln -s "$SW_SOURCE_DIR/signatures" signatures
echo 'bwrap: setting up uid map: Permission denied' >out.txt
cp out.txt out
echo '{"id":"a","backend":"bwrap","exit":1,"output":"bwrap: setting up uid map: Permission denied\n"}' >cases.ndjson
# A trail with something in it, for report, export and their like.
sandwitness record <cases.ndjson >/dev/null 2>&1

# example NAME COMMAND-LINE ALLOWED-STATUSES-REGEX
example() {
	local output status command=${2//\/tmp\//$tap_dir/tmp/} # files of an earlier run do not matter
	output=$(timeout 60 bash -c "$command" 2>&1 </dev/null)
	status=$?
	if [[ $status =~ ^($3)$ ]] && { [ $status -eq 0 ] || ! grep -q '^usage: sandwitness' <<<"$output"; }; then
		pass "$1: $2"
	else
		fail "$1: $2" "status $status" "$(head -c 1500 <<<"$output")"
	fi
}

verbs=$(sandwitness help | sed -n 's/^  \([a-z-]*\)  .*/\1/p')
isnt "help lists verbs" "$(wc -w <<<"$verbs")" 0
for verb in $verbs; do
	tap_run sandwitness help "$verb"
	like "help $verb: a usage line" "$(out)" "^usage: sandwitness $verb"
	examples=$(sed -n 's/^ *\$ \(.*\)/\1/p' <<<"$(out)")
	isnt "help $verb: has an example" "$examples" ""
	# doctor and preflight answer about this machine, whatever it is.
	case $verb in
	doctor | preflight) allowed='0|10|11' ;;
	*) allowed=0 ;;
	esac
	while IFS= read -r line; do
		[ -n "$line" ] && example "help $verb" "$line" "$allowed"
	done <<<"$examples"
	is "--help is the same as help $verb" "$(sandwitness "$verb" --help 2>&1)" "$(sandwitness help "$verb")"
done

# In documents, lines "    $ COMMAND"; their commands may end as they like, but not as misuse.
for document in "$SW_SOURCE_DIR"/README.md "$SW_SOURCE_DIR"/docs/*.md; do
	[ -e "$document" ] || continue
	while IFS= read -r line; do
		case $line in *'scripts/'* | 'cd '* | 'git '* | 'sudo '* | 'cmake '*) continue ;; esac
		example "${document#"$SW_SOURCE_DIR"/}" "$line" '[0-9]|[1-9][0-9]|1[013-9][0-9]|2[0-9][0-9]'
	done < <(sed -n 's/^    \$ \(sandwitness .*\|.*| sandwitness .*\)/\1/p' "$document" | grep -v ' serve\b')
done
done_testing
