#!/bin/bash
# status, with the real bwrap and with everything that may stand in its place.
. "$(dirname "$0")/../tap.sh"

command -v python3 >/dev/null || skip_all "python3 is missing"
sw=$tap_dir/sandwitness
install -m 755 "$SANDWITNESS" "$sw"
chmod 755 "$tap_dir"

# get JSON EXPRESSION: s is the status, b its bwrap, l its landlock
get() {
	python3 -c '
import json, sys
s = json.loads(sys.argv[1])
by = {x["id"]: x for x in s["backends"]}
b, l = by["bwrap"], by["landlock"]
v = eval(sys.argv[2])
print(v if isinstance(v, str) else json.dumps(v))' "$1" "$2"
}
plain_home=$(mktemp -d /var/tmp/sandwitness-test.XXXXXX)
trap 'rm -rf "$tap_dir" "$plain_home"' EXIT
plain_user() {
	if [ "$(id -u)" -eq 0 ]; then
		HOME=$plain_home XDG_STATE_HOME=$tap_dir/plain setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"
	else
		"$@"
	fi
}
mkdir -p "$tap_dir/plain"
[ "$(id -u)" -ne 0 ] || chown 65534:65534 "$plain_home" "$tap_dir/plain"

fake() { # BODY: a folder with a bwrap of this content, printed
	local dir
	dir=$(mktemp -d "$tap_dir/fake.XXXX")
	printf '#!/bin/sh\n%s\n' "$1" >"$dir/bwrap"
	chmod 755 "$dir" "$dir/bwrap"
	echo "$dir"
}
probe_in() { # PATH [OPTIONS]
	local path=$1
	shift
	PATH=$path "$sw" status --probe=bwrap --json "$@"
}
leftovers() { # folders that probes of this user left
	ls -d /tmp/sandwitness-probe-* /var/tmp/.sandwitness-probe-* "$HOME"/.sandwitness-probe-* \
		"$plain_home"/.sandwitness-probe-* 2>/dev/null
}
before=$(leftovers)
left_behind() { # what is new and stays; a probe of someone else at this moment takes its folder away
	local new folder
	new=$(comm -13 <(sort <<<"$before") <(leftovers | sort))
	for _ in $(seq 100); do
		for folder in $new; do
			[ ! -d "$folder" ] || { sleep 0.1 && continue 2; }
		done
		return
	done
	printf '%s\n' "$new"
}

# ---- shape ----
j=$("$sw" status --json)
is "the seed's four names come first, then backends and host" \
	"$(get "$j" 'list(s)[:6]')" '["bwrap_available", "bwrap_path", "disabled_via_env", "active", "backends", "host"]'
is "fields of a backend" "$(get "$j" 'list(b)[:7]')" \
	'["id", "found", "path", "untrusted_path", "untrusted_why", "version", "probe"]'
is "fields of a probe" "$(get "$j" 'list(b["probe"])[:7]')" \
	'["result", "at", "duration_ms", "context", "steps", "cause", "advice"]'
is "without --probe nothing is probed" "$(get "$j" 'sorted({x["probe"]["result"] for x in s["backends"]})')" '["not_probed"]'
is "and nothing is claimed" "$(get "$j" '[x["id"] for x in s["backends"] if x["guarantees"]]')" '[]'
is "every host fact names its source" "$(get "$j" '[k for k, v in s["host"].items() if not v["source"]]')" '[]'
is "what could not be read says so" "$(get "$j" '[k for k, v in s["host"].items() if v["value"] is None and not v.get("unknown")]')" '[]'
if [ "$(uname)" = Linux ]; then
	is "no sandbox-exec on Linux" "$(get "$j" 'by["seatbelt"]["note"]')" "not on this platform"
	is "no AppContainer on Linux" "$(get "$j" 'by["appcontainer"]["note"]')" "not on this platform"
fi
fails_with "an unknown backend is refused" 1 "$sw" status --probe=frob

# ---- the real one ----
real=$(command -v bwrap)
works=
if [ -n "$real" ] && "$real" --ro-bind / / --unshare-user true 2>/dev/null; then works=1; fi
for user in "" plain_user; do
	who=$([ -n "$user" ] && echo "plain user" || id -un)
	if [ -z "$works" ]; then
		skip "bwrap as $who" "bwrap does not work here"
		continue
	fi
	j=$($user "$sw" status --probe=bwrap --json)
	is "$who: bwrap is proved in full" "$(get "$j" 'b["probe"]["result"]')" full
	is "$who: both directions" "$(get "$j" '[x["result"] for x in b["probe"]["steps"] if x["name"] in ("permitted-write", "forbidden-write")]')" '["ok", "ok"]'
	is "$who: what was proved" "$(get "$j" 'b["guarantees"]')" \
		'["fs_write", "fs_read", "network", "pid", "ipc", "env", "tree_kill"]'
	is "$who: the context is recorded" "$(get "$j" 'sorted(b["probe"]["context"])')" \
		'["container", "gid", "no_new_privs", "path", "seccomp", "uid", "userns"]'
	is "$who: others are not probed" "$(get "$j" 'l["probe"]["result"]')" not_probed
done
for user in "" plain_user; do
	who=$([ -n "$user" ] && echo "plain user" || id -un)
	j=$($user "$sw" status --probe=landlock --json)
	if [ "$(get "$j" 'int((s["host"]["landlock_abi"]["value"] or "0").split()[0])')" -ge 3 ]; then
		is "$who: Landlock is proved" "$(get "$j" 'l["probe"]["result"]')" full
		is "$who: the planted file was unreadable" "$(get "$j" '[x["result"] for x in l["probe"]["steps"] if x["name"] == "private-read"]')" '["ok"]'
		is "$who: Landlock never claims the network" "$(get "$j" '"network" in l["guarantees"]')" false
	else
		is "$who: an old Landlock is refused" "$(get "$j" 'l["probe"]["result"]')" unusable
	fi
done

# ---- user namespaces used up ----
if [ -n "$works" ] && unshare -Ur true 2>/dev/null; then
	for user in "" plain_user; do
		who=$([ -n "$user" ] && echo "plain user" || id -un)
		# shellcheck disable=SC2016
		j=$($user unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$0" status --probe=bwrap --json' "$sw")
		is "$who: no user namespaces: unusable" "$(get "$j" 'b["probe"]["result"]')" unusable
		like "$who: for the right cause" "$(get "$j" 'b["probe"]["cause"]')" '^userns-(limit|disabled)$'
		isnt "$who: with advice" "$(get "$j" 'b["probe"]["advice"]')" null
		is "$who: not active" "$(get "$j" 's["active"]')" false
		is "$who: the fact beside it" "$(get "$j" 's["host"]["max_user_namespaces"]["value"]')" 0
	done
else
	skip "max_user_namespaces 0" "no user namespaces here"
fi
if [ -n "$works" ] && [ "$(id -u)" -eq 0 ]; then
	# /proc with something mounted over a part of it: a new one cannot be mounted in a user namespace
	j=$(unshare -m sh -c 'mount --bind /dev/null /proc/meminfo && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$0" status --probe=bwrap --json' "$sw")
	is "no fresh /proc: the reduced base works" "$(get "$j" 'b["probe"]["result"]')" partial
	is "and claims less" "$(get "$j" '[g for g in ("pid", "tree_kill") if g in b["guarantees"]]')" '[]'
	like "with the cause of the full one" "$(get "$j" 'b["probe"]["cause"]')" 'proc'
fi

# ---- nothing, or something else, under that name ----
j=$(PATH=/nonexistent "$sw" status --probe=bwrap --json)
is "missing: not available, no path, not active" "$(get "$j" '[s["bwrap_available"], s["bwrap_path"], s["active"], b["found"]]')" '[false, null, false, false]'

j=$(probe_in "$(fake 'echo "I am a teapot"; exit 0'):$PATH")
is "prints nonsense, exit 0: unusable" "$(get "$j" '[b["probe"]["result"], b["probe"]["cause"]]')" '["unusable", "probe-no-command"]'
j=$(probe_in "$(fake 'echo "I am a teapot"; exit 3'):$PATH")
is "prints nonsense, exit 3: unusable" "$(get "$j" 'b["probe"]["result"]')" unusable
j=$(probe_in "$(fake 'for a; do case $a in *start*) echo "sandwitness-probe start"; esac; done; echo "sandwitness-probe end"; exit 0'):$PATH")
is "says what a probe would say, does nothing: unusable" "$(get "$j" 'b["probe"]["result"]')" unusable

unconfined='while [ "$1" != -- ]; do shift; done; shift; exec "$@"'
j=$(probe_in "$(fake "$unconfined"):$PATH")
is "exits 0 without confining: unusable" "$(get "$j" '[b["probe"]["result"], b["probe"]["cause"]]')" '["unusable", "probe-not-confined"]'
is "because the forbidden write succeeded" "$(get "$j" '[x["result"] for x in b["probe"]["steps"] if x["name"] == "forbidden-write"]')" '["failed"]'
is "nothing is claimed for it" "$(get "$j" '[b["guarantees"], s["active"]]')" '[[], false]'
j=$(probe_in "$(fake "$unconfined; exit 1" | sed 's/exec//'):$PATH")
is "does not confine and fails: not called usable" "$(get "$j" 'b["probe"]["result"]')" unusable
if [ -n "$works" ]; then
	j=$(probe_in "$(fake "n=0; for a; do [ \$a = --unshare-net ] || set -- \"\$@\" \"\$a\"; shift; done; exec $real \"\$@\""):$PATH")
	is "drops --unshare-net: partial, network not claimed" "$(get "$j" '[b["probe"]["result"], "network" in b["guarantees"], "fs_write" in b["guarantees"]]')" '["partial", false, true]'
	j=$(probe_in "$(fake "for a; do [ \$a = --clearenv ] || set -- \"\$@\" \"\$a\"; shift; done; exec $real \"\$@\""):$PATH")
	is "drops --clearenv: env not claimed" "$(get "$j" '[b["probe"]["result"], "env" in b["guarantees"]]')" '["partial", false]'
fi

mark="7$((RANDOM % 9000 + 1000))$$"
j=$(probe_in "$(fake "sleep $mark & sleep $mark"):$PATH" --deadline 300ms)
is "hangs: unknown after its deadline" "$(get "$j" '[b["probe"]["result"], b["probe"]["cause"]]')" '["unknown", "probe-timeout"]'
is "and is ended" "$(pgrep -f "sleep $mark" | wc -l)" 0
is "an unknown one is not active" "$(get "$j" 's["active"]')" false

# ---- interrupted ----
dir=$(fake "sleep $mark & sleep $mark")
PATH=$dir:$PATH "$sw" status --probe=bwrap --deadline 30s >/dev/null 2>&1 &
pid=$!
for _ in $(seq 100); do
	pgrep -f "sleep $mark" >/dev/null && break
	sleep 0.05
done
kill -TERM "$pid"
wait "$pid"
is "TERM ends a probe" "$?" 143
is "and what it started" "$(pgrep -f "sleep $mark" | wc -l)" 0
is "and removes what it planted" "$(left_behind)" ""

# ---- a PATH that others can write ----
evil=$(fake "$unconfined")
chmod 777 "$evil"
j=$(probe_in "$evil:$PATH")
is "a folder others can write is skipped" "$(get "$j" 'b["untrusted_path"]')" "$evil/bwrap"
is "and the next one on PATH is taken" "$(get "$j" 'b["path"]')" "${real:-null}"
evil=$(fake "$unconfined")
mkdir "$evil/bin" && mv "$evil/bwrap" "$evil/bin/" && chmod 777 "$evil"
j=$(PATH=$evil/bin "$sw" status --json)
is "so is one below such a folder" "$(get "$j" '[b["found"], b["untrusted_path"]]')" "[false, \"$evil/bin/bwrap\"]"
chmod 1777 "$evil"
j=$(PATH=$evil/bin "$sw" status --json)
is "a sticky parent is fine" "$(get "$j" 'b["found"]')" true
evil=$(fake "$unconfined")
chmod 777 "$evil/bwrap"
j=$(PATH=$evil "$sw" status --json)
is "a program others can write is skipped" "$(get "$j" 'b["found"]')" false
evil=$(fake "$unconfined")
chmod 777 "$evil"
ok=$(mktemp -d "$tap_dir/link.XXXX") && chmod 755 "$ok" && ln -s "$evil/bwrap" "$ok/bwrap"
j=$(PATH=$ok "$sw" status --json)
is "a link into such a folder is skipped" "$(get "$j" 'b["found"]')" false
j=$(cd "$evil" && PATH=. "$sw" status --json)
is "a relative entry of PATH is skipped" "$(get "$j" 'b["found"]')" false
if [ "$(id -u)" -eq 0 ]; then
	evil=$(fake "$unconfined")
	chown 65534 "$evil"
	j=$(PATH=$evil "$sw" status --json)
	is "a folder of another user is skipped" "$(get "$j" 'b["found"]')" false
fi

# ---- switched off ----
for value in 0 off OFF No false FALSE; do
	j=$(SANDWITNESS_SANDBOX=$value "$sw" status --json)
	is "SANDWITNESS_SANDBOX=$value disables" "$(get "$j" '[s["disabled_via_env"], s["active"]]')" '[true, false]'
done
j=$(METNOS_SANDBOX=off "$sw" status --json)
is "METNOS_SANDBOX=off disables" "$(get "$j" 's["disabled_via_env"]')" true
for value in 1 on yes true '' offf; do
	j=$(SANDWITNESS_SANDBOX=$value "$sw" status --json)
	is "SANDWITNESS_SANDBOX='$value' does not" "$(get "$j" 's["disabled_via_env"]')" false
done

# ---- a real failure makes the next status probe ----
if [ -n "$works" ] && "$sw" help run >/dev/null 2>&1; then
	"$sw" run --audit=off -- bwrap --bind /nonexistent/x /x true >/dev/null 2>&1
	j=$("$sw" status --json)
	is "the next status probes bwrap afresh" "$(get "$j" 'b["probe"]["result"]')" full
	like "and says why" "$(get "$j" 'b["probe"]["recheck"]')" 'runner_failed at .*mount-source-missing'
	is "and only bwrap" "$(get "$j" 'l["probe"]["result"]')" not_probed
	j=$("$sw" status --json)
	is "once" "$(get "$j" 'b["probe"]["result"]')" not_probed
fi

is "no probe leaves anything behind" "$(left_behind)" ""
done_testing
