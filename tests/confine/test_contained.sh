#!/bin/bash
# A confined command cannot write outside, read the home, see the environment, reach the
# network or outlive its deadline: each tried for real, under bwrap (full and partial) and
# Landlock, as root and as a plain user.
# shellcheck disable=SC2016
. "$(dirname "$0")/../tap.sh"

place=$(mktemp -d /var/tmp/sandwitness-test.XXXXXX)
chmod 755 "$place"
listener=
cleanup() {
	[ -z "$listener" ] || kill "$listener" 2>/dev/null
	rm -rf "$place" "$tap_dir"
}
trap cleanup EXIT
# a plain user must be able to execute it
install -m 755 "$SANDWITNESS" "$place/sandwitness"
sw=$place/sandwitness

# A server on this side that nobody confined may reach.
port=
if command -v python3 >/dev/null; then
	python3 -c '
import socket, sys
t = socket.socket(); t.bind(("127.0.0.1", 0)); t.listen(16)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", t.getsockname()[1]))
print(t.getsockname()[1], flush=True)
while True: t.accept()[0].close()
' >"$place/port" 2>/dev/null &
	listener=$!
	for _ in $(seq 100); do
		[ -s "$place/port" ] && break
		sleep 0.05
	done
	port=$(cat "$place/port")
fi

as_user() { # USER COMMAND...
	local user=$1
	shift
	if [ "$user" = root ]; then
		HOME=$place/root/home "$@"
	else
		HOME=$place/plain/home setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"
	fi
}

# confined USER LABEL CONFINE-OPTIONS -- COMMAND: runs it, output in $out, status in $status
confined() {
	local user=$1
	shift
	local line
	if ! line=$(SECRET_TOKEN=hunter2 as_user "$user" "$sw" confine "$@" 2>"$tap_dir/err"); then
		out=$(cat "$tap_dir/err")
		status=confine
		return
	fi
	out=$(SECRET_TOKEN=hunter2 as_user "$user" bash -c "$line" 2>&1 </dev/null)
	status=$?
}

try() { # USER BACKEND [--partial]
	local user=$1 backend=$2 extra=$3
	local dir=$place/$([ "$user" = root ] && echo root || echo plain)
	local ws=$dir/ws home=$dir/home label="$user, $backend${extra:+ $extra}"
	mkdir -p "$ws" "$home"
	echo planted-secret >"$home/private"
	rm -f "$ws"/* "$home/escaped" "/var/tmp/sandwitness-escaped-$$"
	[ "$user" = root ] || chown -R 65534:65534 "$dir"
	# shellcheck disable=SC2206
	local o=(--backend $backend $extra --sandbox workspace_write --workspace $ws)

	confined "$user" "${o[@]}" -- sh -c 'echo data >made && cat made; pwd; echo "home=$HOME"'
	is "$label: works in the workspace" "$status/$(cat "$ws/made" 2>&1)" 0/data
	like "$label: is in the workspace, which is its home" "$out" "home=$ws\$"

	confined "$user" "${o[@]}" -- sh -c "echo x >'$home/escaped'; echo x >/var/tmp/sandwitness-escaped-$$; mkdir -p '$home'; echo x >'$home/escaped'; echo x >/etc/sandwitness-escaped; echo x >'$dir/escaped'; echo x >>'$home/private'"
	is "$label: cannot write outside" \
		"$(ls "$home/escaped" "/var/tmp/sandwitness-escaped-$$" /etc/sandwitness-escaped "$dir/escaped" 2>/dev/null)$(cat "$home/private")" planted-secret
	isnt "$label: and is told so" "$status" 0

	confined "$user" "${o[@]}" -- sh -c "cat '$home/private'; cat /proc/self/root'$home/private'; ls '$home' /root"
	unlike "$label: cannot read the home" "$out" planted-secret
	if [ "$user" = root ]; then
		confined "$user" "${o[@]}" -- sh -c 'cat /etc/shadow /etc/gshadow'
		unlike "$label: cannot read the shadow file" "$out" '^root:'
	fi

	confined "$user" "${o[@]}" -- sh -c 'env; cat /proc/$PPID/environ /proc/1/environ | tr "\0" "\n"'
	unlike "$label: cannot see the environment" "$out" 'hunter2|SECRET_TOKEN'
	confined "$user" "${o[@]}" --env SECRET_TOKEN -- env
	like "$label: sees a variable that is named" "$out" 'SECRET_TOKEN=hunter2'

	confined "$user" "${o[@]}" -- sh -c 'grep -E "^(CapEff|CapBnd|NoNewPrivs):" /proc/self/status | tr -s "\t0" " 0"; (exec 3<>/dev/tty) && echo has-tty'
	like "$label: has no capability, and can gain none" "$(echo "$out" | tr '\n' ' ')" 'CapEff: 0 .*NoNewPrivs: 1'
	unlike "$label: has no terminal" "$out" has-tty

	if [ "$backend" = bwrap ]; then
		confined "$user" "${o[@]}" -- sh -c 'mount -o remount,rw,bind / || mount -t tmpfs x /mnt || umount /tmp || unshare -rm mount -o remount,rw,bind /usr'
		isnt "$label: cannot change its mounts" "$status" 0
	fi

	if [ -n "$port" ] && command -v bash >/dev/null; then
		confined "$user" "${o[@]}" -- bash -c "exec 3<>/dev/tcp/127.0.0.1/$port && echo connected"
		unlike "$label: cannot reach the network by TCP" "$out" '^connected'
		if [ "$backend" = bwrap ]; then
			confined "$user" "${o[@]}" -- sh -c 'grep -c : /proc/net/dev'
			is "$label: sees no interface but its own loopback" "$out" 1
		fi
		confined "$user" "${o[@]}" --network -- bash -c "exec 3<>/dev/tcp/127.0.0.1/$port && echo connected"
		like "$label: reaches it where it is allowed" "$out" '^connected'
	else
		skip "$label: network" "python3 is missing"
	fi

	confined "$user" --backend "$backend" ${extra:+$extra} --sandbox read_only --workspace "$ws" -- sh -c 'cat made && echo y >made'
	is "$label: read_only reads the workspace and does not write it" "$(cat "$ws/made")/$([ "$status" -ne 0 ] && echo refused)" data/refused

	if "$sw" help run >/dev/null 2>&1; then
		local line mark="8$((RANDOM % 9000 + 1000))$$"
		line=$(as_user "$user" "$sw" confine "${o[@]}" -- sh -c "trap '' TERM; setsid sleep $mark & sleep $mark & wait")
		as_user "$user" bash -c "'$sw' run --audit=off --deadline 500ms -- $line" >/dev/null 2>&1 </dev/null
		for _ in $(seq 40); do
			pgrep -f "sleep $mark" >/dev/null || break
			sleep 0.05
		done
		is "$label: does not outlive its deadline" "$(pgrep -f "sleep $mark" | wc -l)" 0
	else
		skip "$label: deadline" "no run in this build"
	fi
}

usable() { # USER BACKEND
	as_user "$1" "$sw" preflight --backend "$2" --require partial >/dev/null 2>&1
}

users=plain
[ "$(id -u)" -ne 0 ] || users="root plain"
[ "$(id -u)" -eq 0 ] || as_user() { shift; HOME=$place/plain/home "$@"; }
mkdir -p "$place/root/home" "$place/plain/home"
[ "$(id -u)" -ne 0 ] || chown -R 65534:65534 "$place/plain"
for user in $users; do
	for backend in bwrap landlock; do
		if usable "$user" "$backend"; then
			try "$user" "$backend" ''
			[ "$backend" != bwrap ] || try "$user" bwrap --partial
		else
			skip "$user, $backend" "not usable here"
		fi
	done
done
done_testing
