#!/bin/bash
# confine prints and never spawns; what it prints runs.
. "$(dirname "$0")/../tap.sh"

sw=$SANDWITNESS
ws=$(mktemp -d /tmp/sandwitness-ws.XXXXXX)
trap 'rm -rf "$tap_dir" "$ws"' EXIT

is "the fixed wrapper" "$("$sw" confine --merge-stderr -- echo hi)" "/bin/sh -c 'exec \"\$@\" 2>&1' sh echo hi"
is "as JSON" "$("$sw" confine --merge-stderr --json -- echo hi)" \
	'{"schema":1,"argv":["/bin/sh","-c","exec \"$@\" 2>&1","sh","echo","hi"]}'
# shellcheck disable=SC2016
odd='a b;$(touch x)`y`'\''"\'
is "any argument comes through a shell unchanged" "$(eval "$("$sw" confine --merge-stderr -- printf '%s|%s|' "$odd" '')")" "$odd||"
is "stderr is merged" "$(eval "$("$sw" confine --merge-stderr -- sh -c 'echo e >&2')" 2>/dev/null)" e
printf '["echo","a\\u0000b"]' >"$tap_dir/nul.json"
fails_with "NUL is refused" 1 "$sw" confine --merge-stderr --argv-json "$tap_dir/nul.json"
printf '["echo","hi there"]' >"$tap_dir/argv.json"
like "a command from JSON" "$("$sw" confine --merge-stderr --argv-json "$tap_dir/argv.json")" "sh echo 'hi there'\$"
fails_with "JSON that is no list" 1 "$sw" confine --merge-stderr --argv-json /dev/null

mkdir -p "$tap_dir/trap"
printf '#!/bin/sh\necho spawned >%s/spawned\n' "$tap_dir" >"$tap_dir/trap/bwrap"
chmod 755 "$tap_dir" "$tap_dir/trap" "$tap_dir/trap/bwrap"
for program in docker podman sandbox-exec; do cp "$tap_dir/trap/bwrap" "$tap_dir/trap/$program"; done
for backend in bwrap docker podman landlock seatbelt; do
	j=$(PATH=$tap_dir/trap:$PATH "$sw" confine --json --backend $backend --sandbox workspace_write --workspace "$ws" -- make)
	like "$backend: argv, roots and guarantees" "$j" "\"backend\":\"$backend\".*\"argv\":\[.*\"make\"\].*\"writable_roots\":\[\"$ws\".*\"guarantees\":\[\"fs_write\""
done
is "nothing was spawned" "$(ls "$tap_dir/spawned" 2>/dev/null)" ""
j=$("$sw" confine --json --sandbox danger_full_access -- make all)
like "danger_full_access changes nothing and claims nothing" "$j" '"backend":"none".*"argv":\["make","all"\].*"enforcement":"none".*"guarantees":\[\]'
j=$("$sw" confine --json --sandbox workspace_write --workspace "$ws" -- make)
like "not proved: the network is not narrowed" "$j" '"capability":\{"can_reach_network":true,"reaches_beyond_workspace":false,"private_data":true\}'
is "every variable is fixed" "$(printf '%s' "$j" | grep -o '"env":\[[^]]*\]')" \
	"\"env\":[\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\",\"HOME=$ws\",\"TMPDIR=/tmp\",\"LANG=C.UTF-8\"]"

fails_with "no mode" 1 "$sw" confine -- make
fails_with "an unknown mode" 1 "$sw" confine --sandbox most -- make
fails_with "no command" 1 "$sw" confine --sandbox read_only
fails_with "a workspace that is not there" 1 "$sw" confine --sandbox read_only --workspace /nonexistent -- make
fails_with "the system as workspace" 1 "$sw" confine --sandbox workspace_write --workspace /etc -- make
fails_with "the root as workspace" 1 "$sw" confine --sandbox workspace_write --workspace / -- make
ln -s /etc "$ws/link"
fails_with "a link to the system as workspace" 1 "$sw" confine --sandbox workspace_write --workspace "$ws/link" -- make
fails_with "writable in read_only" 1 "$sw" confine --sandbox read_only --workspace "$ws" --writable /tmp -- make
fails_with "no such backend" 1 "$sw" confine --backend firejail --sandbox read_only --workspace "$ws" -- make
done_testing
