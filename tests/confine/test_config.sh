#!/bin/bash
# The configuration file: every option has its key, the command line wins, mistakes are told.
. "$(dirname "$0")/../tap.sh"

sw=$SANDWITNESS
ws=$tap_dir/ws
mkdir -p "$ws" "$XDG_CONFIG_HOME/sandwitness" "$tap_dir/extra"
file=$XDG_CONFIG_HOME/sandwitness/config.yaml
conf() { printf '%s\n' "$@" >"$file" && chmod 600 "$file"; }
confine() { "$sw" confine --json --workspace "$ws" "$@"; }

like "without a file: bwrap" "$(confine --sandbox read_only -- make)" '"backend":"bwrap"'

conf 'sandbox:' '  kind: docker' '  mode: workspace_write' '  network: true' \
	"  readable: [$tap_dir/extra, /opt]" '  writable: []' '  env: [PLANTED]' '  image: busybox' \
	'  memory_mb: 64' '  cpus: 0.5'
j=$(PLANTED=x confine -- make)
like "kind, mode" "$j" '"backend":"docker".*"mode":"workspace_write"'
like "network" "$j" '"network":"allowed"'
like "readable adds up" "$j" "source=/opt,.*source=$tap_dir/extra,"
like "env by name" "$j" '"--env","PLANTED"'
like "image, memory, cpus" "$j" '"--memory","64m","--cpus","0.50".*"busybox","make"'
like "the command line wins" "$(confine --backend bwrap --sandbox read_only --network=false -- make)" \
	'"backend":"bwrap".*"mode":"read_only","network":"denied"'
like "lists of the command line come in addition" "$(confine --backend bwrap --readable /usr/share -- make)" \
	'"/opt","/opt".*"/usr/share","/usr/share"'

conf 'sandbox: {kind: bwrap, network: false}'
unlike "run is not wrapped unless --sandbox is said" \
	"$("$sw" run --audit=off --json -- sh -c 'echo a' 2>/dev/null)" '"backend":"bwrap"'

conf 'confine:' '  backend: podman' '  memory-mb: 32' 'status: {deadline: 9s}'
like "a verb's own section" "$(confine --sandbox read_only -- make)" '"backend":"podman".*"32m"'
conf 'sandbox: {kind: docker}' 'confine: {backend: landlock}'
like "which wins over sandbox" "$(confine --sandbox read_only -- make)" '"backend":"landlock"'
conf 'confine: {backend: "--sandbox"}'
fails_with "a value is never an option" 1 confine --sandbox read_only -- make
conf ''
succeeds "an empty file" "$sw" status

told() { # NAME STATUS TEXT LINES...
	local name=$1 status=$2 text=$3
	shift 3
	conf "$@"
	fails_with "$name" "$status" "$sw" confine --sandbox read_only --workspace "$ws" -- make
	like "$name: told" "$(err)" "$text"
}
told "no YAML" 1 "config.yaml:[23]:" 'sandbox:' '  kind: [bwrap'
told "an unknown key" 1 'config.yaml:1:1: unknown key' 'sandboks: {}'
told "an unknown key in sandbox" 1 'config.yaml:2:3: unknown key in sandbox' 'sandbox:' '  knid: bwrap'
told "a list where a mapping is wanted" 1 'config.yaml:1:10' 'sandbox: [bwrap]'
told "no mapping at all" 1 'mapping' '- a'
told "a mapping as a value" 1 'config.yaml:1:17' 'sandbox: {kind: {a: b}}'
told "an option that the verb does not know" 1 'options were added from .*config.yaml' 'confine: {frob: 1}'
conf 'sandbox: {kind: docker}'
chmod 666 "$file"
fails_with "a file that others can write" 1 confine --sandbox read_only -- make
like "is told" "$(err)" 'can be written by others'
fails_with "and run executes nothing" 125 "$sw" run --audit=off -- touch "$tap_dir/ran"
is "really" "$(ls "$tap_dir/ran" 2>/dev/null)" ""
like "an empty SANDWITNESS_CONFIG is none" "$(SANDWITNESS_CONFIG='' confine --sandbox read_only -- make)" '"backend":"bwrap"'
fails_with "a named file that is not there" 2 env SANDWITNESS_CONFIG=/nonexistent "$sw" status
printf 'sandbox: {kind: landlock}\n' >"$tap_dir/other.yaml"
chmod 600 "$tap_dir/other.yaml"
like "a named file" "$(SANDWITNESS_CONFIG=$tap_dir/other.yaml confine --sandbox read_only -- make)" '"backend":"landlock"'
done_testing
