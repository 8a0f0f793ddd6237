#!/bin/bash
# What `run` says an argv gives, on the real file system: each line is something that a command
# could read, change or reach although the arguments look closed.
# shellcheck disable=SC2016
. "$(dirname "$0")/../tap.sh"
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

command -v python3 >/dev/null || skip_all "python3 is missing"
command -v bwrap >/dev/null || skip_all "bwrap is missing"
place=$(mktemp -d /var/tmp/sandwitness-test.XXXXXX)
trap 'rm -rf "$place" "$tap_dir"' EXIT
chmod 755 "$place" "$tap_dir"
install -m 755 "$SANDWITNESS" "$place/sandwitness"
sw=$place/sandwitness
cd "$place" || exit 1
as=$(id -un)

# level RUN-OPTIONS -- ARGV: the guarantees, or "unknown"
level() {
	rm -f "$tap_dir/v"
	"$sw" run --audit=off --quiet --deadline 10s --verdict-file "$tap_dir/v" "$@" \
		>/dev/null 2>&1
	python3 </dev/null -c '
import json, sys
l = json.load(open(sys.argv[1]))["level"]
print("unknown" if l["basis"] == "unknown" else ",".join(l["guarantees"]))' "$tap_dir/v"
}
# lacks NAME LEVEL REGEX: a level was told, and nothing of this is in it
lacks() {
	if [ -n "$2" ]; then unlike "$@"; else fail "$1" "no level was told"; fi
}
box=(bwrap --unshare-all --die-with-parent --new-session --clearenv --cap-drop ALL --ro-bind /usr /usr
	--symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev)
all=fs_write,fs_read,network,pid,ipc,env,tree_kill

is "$as: a plain sandbox keeps what it gives" "$(level -- "${box[@]}" true </dev/null)" "$all"

mkdir -p home/u/.ssh home/u/proj ws/sub
ln -s ../home/u/proj ws/link
ln -s u home/alias
is "$as: a workspace keeps it" "$(level -- "${box[@]}" --bind ws /s true </dev/null)" "$all"
for source in "$place/ws/link/.." "ws/link/.." ws/link/../.ssh; do
	lacks "$as: .. after a link is the folder above its target: $source" \
		"$(HOME=$place/home/u level -- "${box[@]}" --ro-bind "$source" /s true </dev/null)" fs_read
done
for home in "$place/home/u/" "$place/home/alias" "$place//home/./u" "$place/home/alias/"; do
	lacks "$as: HOME is private however it is spelled: $home" \
		"$(HOME=$home level -- "${box[@]}" --ro-bind "$place/home/u/.ssh" /s true </dev/null)" fs_read
	lacks "$as: and for the sandbox that is built: $home" \
		"$(HOME=$home level --sandbox read_only --backend bwrap --workspace "$place/ws" \
			--readable "$place/home/u/.ssh" -- true </dev/null)" fs_read
done
like "$as: a home of another name is none of ours" \
	"$(HOME=$place/home/u level -- "${box[@]}" --ro-bind "$place/ws/sub" /s true </dev/null)" fs_read

lacks "$as: a relative folder starts where the runner does" \
	"$(cd ws/sub && HOME=$place/home/u level --cwd ../../home/u/proj -- "${box[@]}" --ro-bind .. /s true </dev/null)" fs_read
lacks "$as: also by --cwd .." \
	"$(cd home/u/proj && HOME=$place/home/u level --cwd .. -- "${box[@]}" --bind . /s true </dev/null)" 'fs_read|fs_write'

# --- descriptors
lacks "$as: a folder on stdin is read" "$(level -- "${box[@]}" true </usr)" 'fs_read'
lacks "$as: and written" "$(level -- "${box[@]}" true <"$place")" 'fs_write|fs_read'
is "$as: not with --null-stdin" "$(level --null-stdin -- "${box[@]}" true <"$place")" "$all"
lacks "$as: a folder that is kept" "$(level --keep-fd 7 -- "${box[@]}" true 7<"$place" </dev/null)" 'fs_write|fs_read'
lacks "$as: a folder that an option names" "$(level -- "${box[@]}" --sync-fd 7 true 7<"$place" </dev/null)" 'fs_write|fs_read'
is "$as: one that is not passed on does not count" "$(level -- "${box[@]}" true 7<"$place" </dev/null)" "$all"
lacks "$as: and for the sandbox that is built" \
	"$(level --sandbox read_only --backend bwrap --workspace "$place/ws" -- true <"$place")" 'fs_write|fs_read'
is "$as: a folder by its descriptor is not known" "$(level -- "${box[@]}" --ro-bind /dev/fd/0 /x true <"$place")" unknown
ln -s /proc/self/fd/0 ws/fd
lacks "$as: nor through a link" "$(level -- "${box[@]}" --ro-bind ws/fd /x true <"$place")" 'fs_read|fs_write'
is "$as: a pipe gives nothing away" "$(true | level -- "${box[@]}" cat)" "$all"

lacks "$as: bwrap's own way to read a number" "$(level -- "${box[@]}" --sync-fd " 7" true 7<"$place" </dev/null)" 'fs_write|fs_read'
is "$as: a number among the command's words names none" "$(level -- "${box[@]}" echo -j 3 -n 4 </dev/null)" "$all"

# --- sources that are not there yet
ln -s /oldroot/etc ws/dangling
is "$as: a link that leads nowhere here can lead somewhere inside" \
	"$(level -- "${box[@]}" --ro-bind-try ws/dangling /y true </dev/null)" unknown
is "$as: so can one that the command line makes" \
	"$(level -- "${box[@]}" --bind ws /w --symlink /oldroot/etc /w/made --bind-try ws/made /y true </dev/null)" unknown
is "$as: what is just missing is nothing" "$(level -- "${box[@]}" --ro-bind-try /no/such /y true </dev/null)" "$all"
rm -f ws/made

# --- the host's places
lacks "$as: shared memory" "$(level -- "${box[@]}" --ro-bind /dev/shm /s true </dev/null)" ipc
lacks "$as: the host's devices" "$(level -- "${box[@]}" --dev-bind /dev /dev true </dev/null)" 'ipc|fs_'
for b in bwrap landlock; do
	is "$as: /run with its daemons, readable in a $b that is built" \
		"$(level --sandbox read_only --backend $b --workspace "$place/ws" --readable /run -- true </dev/null)" env,tree_kill
done
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$place/ws/x.sock"
lacks "$as: a socket by its name" "$(level -- "${box[@]}" --ro-bind ws/x.sock /s true </dev/null)" 'fs_|network|pid'

mkdir -p agent
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$place/agent/agent.77"
for source in agent agent/agent.77; do
	lacks "$as: a socket under any name: $source" "$(level -- "${box[@]}" --ro-bind $source /s true </dev/null)" 'fs_|network|pid'
done

# --- who can change the runner
mkdir -p other
install -m 757 "$(type -P true)" other/bwrap
is "$as: a runner that others can write proves nothing" "$(level -- other/bwrap "${box[@]:1}" true </dev/null)" unknown
is "$as: nor one behind such a program" "$(install -m 757 "$(type -P env)" other/env
	level -- other/env "${box[@]}" true </dev/null)" unknown
"$sw" run --audit=off --quiet --minimum fs_write,network -- other/bwrap "${box[@]:1}" touch "$place/ran" </dev/null 2>/dev/null
is "$as: and does not meet a minimum" "$? $(ls "$place/ran" 2>/dev/null)" "125 "

# --- the terminal
if command -v script >/dev/null && [ "$(cat /proc/sys/dev/tty/legacy_tiocsti 2>/dev/null || echo 1)" = 1 ]; then
	sessionless=()
	for a in "${box[@]}"; do [ "$a" = --new-session ] || sessionless+=("$a"); done
	inner() {
		script -qec "$(printf '%q ' "$sw" run --audit=off --quiet --deadline 10s --verdict-file "$tap_dir/v" -- "$@")" /dev/null \
			</dev/null >/dev/null 2>&1
		python3 -c 'import json, sys; print(",".join(json.load(open(sys.argv[1]))["level"]["guarantees"]))' "$tap_dir/v"
	}
	lacks "$as: input can be pushed into the caller's terminal" "$(inner "${sessionless[@]}" true)" 'fs_|network|pid'
	is "$as: not with --new-session" "$(inner "${box[@]}" true)" "$all"
else
	skip "$as: the terminal" "no script(1), or the kernel takes no input back"
fi

# --- root, and an account without a home
if [ "$(id -u)" -eq 0 ]; then
	lacks "root: /etc/shadow and the like" "$(level -- "${box[@]}" --ro-bind /etc /etc true </dev/null)" fs_read
	lacks "root: all of the host" \
		"$(level -- "${box[@]}" --ro-bind / / --tmpfs /home --tmpfs /root --tmpfs /run true </dev/null)" fs_read
	lacks "root: what may be missing hides nothing" \
		"$(level -- "${box[@]}" --ro-bind / / --ro-bind-try /nonexistent /home --ro-bind-try /nonexistent /root true </dev/null)" fs_read
	lacks "root: a capability by its number" "$(level -- "${box[@]}" --cap-add 21 true </dev/null)" fs_
	mkdir -p "$place/nobody" && chown 65534:65534 "$place/nobody"
	lacks "an account without a home: \$HOME is not all" \
		"$(cd / && setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$place/nobody" \
			"$sw" run --audit=off --json --null-stdin -- bwrap --unshare-all --new-session --ro-bind / / \
			--tmpfs "$place/nobody" true 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)["level"]["guarantees"])')" fs_read
fi
done_testing
