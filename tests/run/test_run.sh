# sandwitness run, through the command line. As root, each rule is checked as a plain user too.
. "$(dirname "$0")/../tap.sh"
script=$(readlink -f "$0")
# The leak checker cannot work in a process that is followed; the unit tests check leaks.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
: "${SW_VICTIM:=$SW_BUILD_DIR/tests/run/run_victim}"
as=${SW_TEST_AS:-$(id -un)}

# A plain user must be able to execute both programs: build folders are often closed to others.
bin=$tap_dir/bin
mkdir -p "$bin"
cp "$SANDWITNESS" "$bin/sandwitness"
cp "$SW_VICTIM" "$bin/victim"
chmod -R a+rX "$tap_dir"
sw=$bin/sandwitness
victim=$bin/victim
work=$tap_dir/work
mkdir -p "$work"
cd "$work" || exit 1
db=$tap_dir/audit.db
box=(bwrap --ro-bind / / --dev /dev --proc /proc --unshare-all --die-with-parent)
run() { "$sw" run --db "$db" "$@"; }
field() { python3 -c '
import json, sys
o = json.load(open(sys.argv[1]))
for k in sys.argv[2].split("."):
    o = o[int(k)] if isinstance(o, list) else o[k]
print(json.dumps(o) if isinstance(o, (dict, list, bool, type(None))) else o)' "$1" "$2"; }
v=$tap_dir/verdict.json

# --- the two runs of the acceptance list
run --verdict-file "$v" -- "${box[@]}" sh -c \
	'echo "bwrap: setting up uid map: Permission denied"; exit 1' >"$tap_dir/out" 2>"$tap_dir/err"
is "$as: exit status is the command's" $? 1
isnt "$as: a forged runner failure is not runner_failed" "$(field "$v" verdict)" runner_failed
is "$as: because the start is attested" "$(field "$v" started)" yes
is "$as: output passes through untouched" "$(cat "$tap_dir/out")" \
	"bwrap: setting up uid map: Permission denied"

run --verdict-file "$v" -- bwrap --ro-bind /nosuch / true >/dev/null 2>"$tap_dir/err"
is "$as: a real failure exits as the runner does" $? 1
is "$as: a real failure is runner_failed" "$(field "$v" verdict)" runner_failed
is "$as: with started = no" "$(field "$v" started)" no
is "$as: attested" "$(field "$v" evidence)" attested
is "$as: by the status descriptor" "$(field "$v" evidence_source)" status-fd
is "$as: stage setup" "$(field "$v" stage)" setup
like "$as: the human line goes to stderr" "$(cat "$tap_dir/err")" '^sandwitness: runner_failed: '

run --verdict-file "$v" -- "${box[@]}" nosuchcommand >/dev/null 2>&1
is "$as: a command that cannot be executed is stage exec" "$(field "$v" stage)" exec
is "$as: and started = no" "$(field "$v" started)" no

run --verdict-file "$v" -- "${box[@]}" sh -c 'touch /etc/denied; exit 3' >/dev/null 2>&1
is "$as: a denied command keeps its exit" $? 3
is "$as: sandbox_denied" "$(field "$v" verdict)" sandbox_denied
is "$as: the path is reported" "$(field "$v" resource)" /etc/denied

# --- where the answers go
run --json -- "${box[@]}" sh -c 'echo out; echo err >&2' >"$tap_dir/out" 2>"$tap_dir/err"
is "$as: --json: stdout holds the verdict alone" "$(wc -l <"$tap_dir/out")" 1
is "$as: --json: it is JSON" "$(field "$tap_dir/out" verdict)" ok
like "$as: --json: the command's output moves to stderr" "$(tr '\n' ' ' <"$tap_dir/err")" 'out err'
run --verdict-fd 9 --quiet -- sh -c 'echo out; echo >&9' >"$tap_dir/out" 2>"$tap_dir/err" 9>"$v"
is "$as: --verdict-fd: the verdict" "$(field "$v" exit)" 2
is "$as: --verdict-fd: the command does not have the descriptor" "$(wc -l <"$v")" 1
like "$as: output is merged" "$(cat "$tap_dir/out")" 'out'
like "$as: output is merged, stderr too" "$(cat "$tap_dir/out")" 'Bad file descriptor'
run --no-merge --verdict-file "$v" -- "${box[@]}" sh -c 'echo proto; echo "touch: /x: Read-only file system" >&2; exit 1' \
	>"$tap_dir/out" 2>"$tap_dir/err"
is "$as: --no-merge: stdout is untouched" "$(cat "$tap_dir/out")" proto
like "$as: --no-merge: stderr stays stderr" "$(cat "$tap_dir/err")" 'Read-only file system'
is "$as: --no-merge: the verdict rests on stderr" "$(field "$v" verdict)" sandbox_denied
is "$as: stdin is inherited" "$(echo question | run -- "${box[@]}" cat)" question

# --- the command's program may be the runner's own file
proof() { run --verdict-file "$v" -- "$@" >/dev/null 2>&1; printf '%s %s %s' "$(field "$v" verdict)" "$(field "$v" started)" "$(field "$v" evidence)"; }
is "$as: a runner within the same runner was started" "$(proof setpriv --no-new-privs setpriv --bogus)" "ok yes text"
is "$as: the outer one's own failure still is one" "$(proof setpriv --no-new-privs --bogus true)" "runner_failed no attested"
is "$as: bwrap within bwrap" "$(proof bwrap --ro-bind / / bwrap --bogus)" "ok yes text"
if [ "$(id -u)" -eq 0 ]; then
	is "$as: unshare within unshare" "$(proof unshare --fork unshare --bogus)" "ok yes text"
	is "$as: chroot within chroot" "$(proof chroot / chroot /nosuch)" "ok yes text"
	is "$as: chroot's own failure" "$(proof chroot /nosuch true)" "runner_failed no attested"
	mkdir "$tap_dir/multi"
	if busybox=$(command -v busybox) && cp "$busybox" "$tap_dir/multi/busybox"; then
		for name in chroot setpriv unshare sh; do ln -s busybox "$tap_dir/multi/$name"; done
		m=$tap_dir/multi
		is "$as: one file is runner and command" "$(proof "$m/chroot" / "$m/sh" -c 'exit 1')" "ok yes text"
		is "$as: a file of many names that executes nothing proves nothing" \
			"$(proof "$m/chroot" /nosuch true | cut -d' ' -f2-)" "unknown text"
		rm "$m/chroot"
		ln "$m/busybox" "$m/chroot"
		is "$as: nor under a second name of its own" "$(proof "$m/chroot" /nosuch true | cut -d' ' -f2-)" "unknown text"
	else
		skip "$as: one file is runner and command" "no busybox here"
	fi
	mkdir "$tap_dir/scripts"
	printf '#!/bin/sh\n# knows --json-status-fd\necho "bwrap: setting up uid map: Permission denied" >&2\nexit 1\n' >"$tap_dir/scripts/bwrap"
	printf '#!/bin/sh\necho "unshare: unshare failed: Operation not permitted" >&2\nexit 1\n' >"$tap_dir/scripts/unshare"
	chmod 755 "$tap_dir/scripts"/*
	for name in bwrap unshare; do
		is "$as: a script in $name's place is not taken for its command" \
			"$(proof "$tap_dir/scripts/$name" -x true | cut -d' ' -f2-)" "unknown text"
	done
	is "$as: a helper of unshare's is not taken for the command" \
		"$(proof unshare --map-users=x true | cut -d' ' -f2-)" "unknown text"
fi
echo 'echo "sandwitness-landlock: failed"; exit 1' >"$work/__landlock"
is "$as: a program with the launcher's word is no launcher" "$(proof sh __landlock -- true | cut -d' ' -f2)" yes
is "$as: its backend is none" "$(field "$v" backend)" none
rm "$work/__landlock"

# --- standard descriptors that the caller closed
is "$as: stdin closed: the verdict's folder does not become it" \
	"$(run --verdict-file "$v" -- sh -c 'cat; echo $?; ls -l /proc/self/fd/0 | grep -c null' <&- 2>&1)" "0
1"
run --verdict-file "$v" -- sh -c 'echo out && echo err >&2' >&- 2>"$tap_dir/err"
is "$as: stdout closed: the verdict arrives, and the command can write" "$? $(field "$v" run.output_bytes)" "0 8"
run --verdict-file "$v" -- sh -c 'echo out && echo err >&2' >"$tap_dir/out" 2>&-
is "$as: stderr closed: all output is on stdout" "$? $(tr '\n' ' ' <"$tap_dir/out")" "0 out err "

# --- exit table
run -- sh -c 'exit 42'
is "$as: exit: the command's" $? 42
run -- sh -c 'kill -TERM $$' 2>/dev/null
is "$as: exit: 128 + signal" $? 143
run --backend bwrap --verdict-file "$v" -- nosuchrunner --x 2>"$tap_dir/err"
is "$as: exit: a missing runner is 127" $? 127
is "$as: a missing runner is named as cause" "$(field "$v" cause)" runner-missing
like "$as: a missing runner: the message says what is missing" "$(cat "$tap_dir/err")" \
	'nosuchrunner: command not found'
run --nosuchoption -- true 2>/dev/null
is "$as: exit: usage is 125" $? 125
run 2>/dev/null
is "$as: exit: no command is 125" $? 125
touch "$work/ran"
rm "$work/ran"
run --minimum bwrap --verdict-file "$v" -- bwrap --bind / / touch "$work/ran" 2>"$tap_dir/err"
is "$as: exit: a minimum that is not met is 125" $? 125
like "$as: it says that nothing was executed" "$(cat "$tap_dir/err")" 'nothing was executed'
is "$as: and nothing was" "$(ls "$work")" ""
is "$as: the record says sandbox_unavailable" "$(field "$v" verdict)" sandbox_unavailable
"$sw" run --db "$work" -- touch "$work/ran" 2>"$tap_dir/err"
is "$as: exit: not recordable is 125" $? 125
is "$as: what cannot be recorded is not run" "$(ls "$work" | grep -c ran)" 0
"$sw" run --db "$work" --audit=best-effort -- echo ran >"$tap_dir/out" 2>"$tap_dir/err"
is "$as: --audit=best-effort runs it all the same" "$(cat "$tap_dir/out")" ran
like "$as: and says that it is not recorded" "$(cat "$tap_dir/err")" 'not recorded'

if command -v flock >/dev/null; then
	locked=$tap_dir/locked.db
	"$sw" run --db "$locked" -- true
	( until [ -e "$work/go" ]; do sleep 0.02; done; exec flock "$locked.lock" sh -c 'touch "$1"; exec sleep 15' sh "$work/taken" ) &
	locker=$!
	start=$(date +%s)
	"$sw" run --db "$locked" --deadline 2s -- sh -c 'touch go; until [ -e taken ]; do sleep 0.02; done' 2>"$tap_dir/err"
	is "$as: a trail that stays locked: not recorded" $? 125
	like "$as: it says so" "$(tr '\n' ' ' <"$tap_dir/err")" 'the audit trail is busy.*its end could not be recorded'
	took=$(($(date +%s) - start))
	if [ $took -lt 9 ]; then pass "$as: and waits no longer than the deadline allows"; else fail "$as: and waits no longer than the deadline allows" "$took s"; fi
	kill $locker
	wait $locker 2>/dev/null
	rm -f go taken
fi

# --- levels
run --requested bwrap --verdict-file "$v" -- bwrap --bind / / true 2>/dev/null
like "$as: --bind / / lost fs_write" "$(field "$v" level.lost)" fs_write
is "$as: its basis is derived" "$(field "$v" level.basis)" derived
is "$as: a downgrade" "$(field "$v" level.downgrade)" true
is "$as: unexplained without a reason" "$(field "$v" level.unexplained)" true
run --requested network --reason 'the job needs it' --verdict-file "$v" -- \
	bwrap --ro-bind / / --unshare-pid true 2>/dev/null
like "$as: without --unshare-net it lost network" "$(field "$v" level.lost)" network
is "$as: a reason explains it" "$(field "$v" level.unexplained)" false
run --requested bwrap --verdict-file "$v" -- bwrap --nosuchoption true 2>/dev/null
is "$as: an argv that is not understood is basis unknown" "$(field "$v" level.basis)" unknown
is "$as: and never counted as contained" "$(field "$v" level.contained)" false

# --- hidden or absent: the host's answer
hidden=$(mktemp -d /var/tmp/sw-hidden.XXXXXX)
echo secret >"$hidden/file"
printf '#!/bin/sh\nexit 0\n' >"$hidden/tool"
chmod -R a+rX "$hidden"
chmod 755 "$hidden/tool"
less=(bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /var/tmp)
run --verdict-file "$v" -- "${less[@]}" cat "$hidden/file" >/dev/null 2>&1
is "$as: a file that is there outside was hidden" "$(field "$v" verdict) $(field "$v" cause) $(field "$v" evidence)" \
	"sandbox_denied hidden-by-sandbox text"
is "$as: its path is reported" "$(field "$v" resource)" "$hidden/file"
run --verdict-file "$v" -- "${less[@]}" cat "$hidden/nosuch" >/dev/null 2>&1
is "$as: a file that is nowhere was not" "$(field "$v" verdict)" ok
run --verdict-file "$v" -- "${less[@]}" sh -c "cat '$hidden/file'; exit 0" >/dev/null 2>&1
is "$as: exit 0 stays ok" "$(field "$v" verdict)" ok
run --verdict-file "$v" -- "${less[@]}" "$hidden/tool" >/dev/null 2>&1
is "$as: the runner's exec line stays runner_failed, exec-hidden" \
	"$(field "$v" verdict) $(field "$v" stage) $(field "$v" cause)" "runner_failed exec exec-hidden"
run --verdict-file "$v" -- "${less[@]}" sh -c "'$hidden/tool'" >/dev/null 2>&1
is "$as: a shell that does not find it: hidden" "$(field "$v" verdict) $(field "$v" cause)" "sandbox_denied hidden-by-sandbox"
run --verdict-file "$v" -- bwrap --ro-bind / / --dev /dev --ro-bind /dev/null "$hidden/file" cat "$hidden/file" >/dev/null 2>&1
is "$as: Permission denied where this user may: the sandbox refused" "$(field "$v" verdict)" sandbox_denied
printf 'x' >"$hidden/closed"
chmod 000 "$hidden/closed"
if [ "$(id -u)" -ne 0 ]; then
	run --verdict-file "$v" -- bwrap --ro-bind / / cat "$hidden/closed" >/dev/null 2>&1
	is "$as: Permission denied where this user may not either: no denial" "$(field "$v" verdict)" ok
fi
rm -rf "$hidden"

# --- the kernel's own word
if (: </dev/kmsg) 2>/dev/null && [ "$(stat -Lc %i /proc/self/ns/pid)" = 4026531836 ]; then
	# kills the process at mkdir; which process it was, the kernel's log says
	cat >"$work/seccomp.py" <<'PY'
import ctypes, os, platform, struct, sys, time
calls = {"x86_64": (83, 258), "aarch64": (34, 34)}[platform.machine()]
code = [(0x20, 0, 0, 0), (0x15, 0, 1, calls[0]), (6, 0, 0, 0x80000000),
        (0x15, 0, 1, calls[1]), (6, 0, 0, 0x80000000), (6, 0, 0, 0x7FFF0000)]
code = b"".join(struct.pack("HBBI", *c) for c in code)
if len(sys.argv) > 1 and sys.argv[1] == "write":
    open(sys.argv[2], "wb").write(code)
    sys.exit()
if len(sys.argv) > 1:
    text = ctypes.create_string_buffer(code)
    class Program(ctypes.Structure):
        _fields_ = [("n", ctypes.c_ushort), ("at", ctypes.c_void_p)]
    p = Program(len(code) // 8, ctypes.cast(text, ctypes.c_void_p))
    libc = ctypes.CDLL(None)
    libc.prctl(38, 1, 0, 0, 0)
    libc.prctl(22, 2, ctypes.byref(p))
# the parent waits before it reaps, so that the record is read while the process is known
if os.fork() == 0:
    os.mkdir("/tmp/never")
time.sleep(0.5)
sys.exit(3)
PY
	python3 "$work/seccomp.py" write "$work/kill.bpf"
	run --verdict-file "$v" -- bwrap --ro-bind / / --dev /dev --seccomp 9 python3 "$work/seccomp.py" \
		9<"$work/kill.bpf" >/dev/null 2>&1
	is "$as: a silent seccomp kill is known from the kernel" \
		"$(field "$v" verdict) $(field "$v" cause) $(field "$v" evidence_source) $(field "$v" exit)" \
		"sandbox_denied seccomp-killed kernel 3"
	like "$as: with the call" "$(field "$v" line)" 'seccomp killed .* at system call mkdir'
	run --verdict-file "$v" -- bwrap --ro-bind / / --dev /dev python3 "$work/seccomp.py" own >/dev/null 2>&1
	is "$as: by the command's own filter it is no denial, only seen" \
		"$(field "$v" verdict) $(field "$v" exit) $(grep -c 'seccomp killed .* at system call mkdir' "$v")" "ok 3 1"
	rm -f "$work/kill.bpf"
	rm -f "$work/seccomp.py"
fi

# --- wrapping the command ourselves
ws=$tap_dir/ws
mkdir -p "$ws"
export XDG_STATE_HOME=$tap_dir/state
for b in bwrap landlock; do
	box_of=(--backend $b --env ASAN_OPTIONS --sandbox workspace_write --workspace "$ws" --verdict-file "$v")
	run "${box_of[@]}" -- sh -c 'echo x >written && touch /usr/denied' >"$tap_dir/out" 2>&1
	is "$as: --sandbox $b: what is written to the workspace arrives" "$(cat "$ws/written")" x
	is "$as: --sandbox $b: a write outside is denied" "$(field "$v" verdict)" sandbox_denied
	is "$as: --sandbox $b: the start is attested" "$(field "$v" started)" yes
	is "$as: --sandbox $b: the level is built" "$(field "$v" level.effective) $(field "$v" level.basis)" "$b built"
	run "${box_of[@]}" -- nosuchcommand >"$tap_dir/out" 2>&1
	is "$as: --sandbox $b: a missing command is stage exec, not started" \
		"$(field "$v" verdict) $(field "$v" stage) $(field "$v" started)" "runner_failed exec no"
	rm -f "$ws/written"
	eval "$(printf '%q ' "$sw" run --db "$db" --verdict-file "$v" --) $("$sw" confine --backend $b \
		--sandbox workspace_write --workspace "$ws" -- sh -c 'exit 4')"
	is "$as: what confine prints for $b runs attested" "$? $(field "$v" backend) $(field "$v" started)" "4 $b yes"
done
run --sandbox read_only --workspace "$ws" --verdict-file "$v" -- sh -c 'touch in' >/dev/null 2>&1
is "$as: --sandbox without --backend takes a proved one" "$(field "$v" verdict)" sandbox_denied
SANDWITNESS_SANDBOX=Off run --sandbox read_only --verdict-file "$v" -- touch "$ws/ran" 2>"$tap_dir/err"
is "$as: the disabling variable refuses" "$? $(field "$v" verdict) $(field "$v" cause)" \
	"125 sandbox_unavailable sandbox-disabled"
like "$as: the refusal says that nothing was executed" "$(cat "$tap_dir/err")" 'nothing was executed'
is "$as: and nothing was, again" "$(ls "$ws")" ""
METNOS_SANDBOX=0 run --sandbox read_only --allow-unconfined --verdict-file "$v" -- echo free >"$tap_dir/out" 2>/dev/null
is "$as: --allow-unconfined runs without" "$? $(cat "$tap_dir/out")" "0 free"
is "$as: and records the downgrade" "$(field "$v" level.downgrade) $(field "$v" level.effective)" \
	"true process_group"
run --sandbox read_only --backend landlock --minimum network --verdict-file "$v" -- touch "$ws/ran" 2>/dev/null
is "$as: a pinned backend below the minimum refuses" "$? $(field "$v" verdict)" "125 sandbox_unavailable"

# --- time and leftovers
start=$(date +%s%N)
run --deadline 300ms --verdict-file "$v" -- "${box[@]}" --new-session sleep 1000 2>/dev/null
took=$((($(date +%s%N) - start) / 1000000))
is "$as: a deadline is reported" "$(field "$v" limit.limit) $(field "$v" limit.certainty)" "deadline proven"
is "$as: the command had started" "$(field "$v" started)" yes
if [ $took -lt 2300 ]; then pass "$as: within two seconds"; else fail "$as: within two seconds" "$took ms"; fi
run --verdict-file "$v" -- "$victim" daemon 1000 2>"$tap_dir/err"
is "$as: a leftover daemon is ended" "$(field "$v" run.leftovers)" 1
like "$as: and said" "$(cat "$tap_dir/err")" 'were still there and were ended'
is "$as: nothing of it is alive" "$(pgrep -f "$victim daemon" | wc -l)" 0
is "$as: a closed reader ends nothing" "$(run --verdict-file "$v" -- "$victim" flood 3000000 2>/dev/null | head -c 10 | wc -c; field "$v" run.output_bytes)" \
	"10
3000000"

# --- one pipe for all that run says, and nobody who reads it
for answers in --quiet --json --verbose; do
	start=$(date +%s%N)
	{
		run $answers --deadline 500ms --grace 100ms -- "$victim" flood 100000000 2>&1
		date +%s%N >"$tap_dir/ended"
	} | sleep 7
	took=$((($(cat "$tap_dir/ended") - start) / 1000000))
	if [ $took -lt 5500 ]; then pass "$as: $answers to a stuck reader: the deadline holds"; else fail "$as: $answers to a stuck reader: the deadline holds" "$took ms"; fi
done

# --- children that were there before: `job & exec sandwitness run ...`
beside=(bash -c '(bash -c "sleep 0.2; sleep 55.5 & echo \$! >\"$0\"; sleep 0.2") >/dev/null 2>&1 & exec "$@"' "$tap_dir/beside")
"${beside[@]}" "$sw" run --audit=off --verdict-file "$v" -- sh -c "'$victim' daemon 60; sleep 1; exit 6" 2>/dev/null
is "$as: beside other children: the command's status, its leftover" "$? $(field "$v" run.leftovers)" "6 1"
is "$as: an orphan of theirs is left alone" "$(kill "$(cat "$tap_dir/beside")" && echo alive)" alive
"${beside[@]}" "$sw" run --audit=off --verdict-file "$v" -- sh -c 'trap "echo told; exit 7" TERM; touch "$1"; while :; do sleep 0.05; done' sh "$work/up" \
	>"$tap_dir/out" 2>/dev/null &
beside_pid=$!
for i in $(seq 200); do [ -e "$work/up" ] && break; sleep 0.02; done
kill -TERM $beside_pid
wait $beside_pid
is "$as: signals are passed on there too" "$? $(cat "$tap_dir/out")" "7 told"
rm -f "$work/up"
sleep 0.5
kill "$(cat "$tap_dir/beside")" 2>/dev/null
"${beside[@]}" "$sw" run --audit=off -- "$victim" stubborn 61 &
beside_pid=$!
for i in $(seq 200); do pgrep -f "$victim stubborn 61" >/dev/null && break; sleep 0.02; done
kill -KILL $beside_pid
wait $beside_pid 2>/dev/null
for i in $(seq 100); do pgrep -f "$sw run --audit=off -- $victim stubborn 61" >/dev/null || break; sleep 0.02; done
is "$as: killed, it takes run with it" "$(pgrep -cf "$sw run --audit=off -- $victim stubborn 61")" 0
sleep 0.5
for pid in $(pgrep -f "$victim stubborn 61"); do kill -KILL "$pid"; done
kill "$(cat "$tap_dir/beside")" 2>/dev/null

for group in /sys/fs/cgroup /sys/fs/cgroup/unified; do
	[ "$(id -u)" -eq 0 ] && [ "$(stat -fc %T $group 2>/dev/null)" = cgroup2fs ] || continue
	mkdir "$group/sw-test-$$" 2>/dev/null || continue
	[ -e "$group/sw-test-$$/cgroup.kill" ] &&
		python3 -c 'import os,sys; os.setxattr(sys.argv[1], "trusted.delegate", b"1")' "$group/sw-test-$$" || {
		rmdir "$group/sw-test-$$"
		continue
	}
	bash -c 'echo $$ >"$1/cgroup.procs" || exit 9
		"$2" run --audit=off --quiet --deadline 300ms --grace 10ms -- sh -c "ls -d \"$1\"/sandwitness-*; \"$3\" bomb 100"
		ls "$1" | grep -c ^sandwitness-' sh "$group/sw-test-$$" "$sw" "$victim" >"$tap_dir/out"
	like "$as: a delegated control group is used" "$(head -n 1 "$tap_dir/out")" "sw-test-$$/sandwitness-"
	is "$as: and removed again" "$(tail -n 1 "$tap_dir/out")" 0
	is "$as: with a crowd that forks all the time ended" "$(pgrep -cf "$victim bomb")" 0
	sleep 0.1
	rmdir "$group/sw-test-$$"
	break
done

# --- proof of start of other runners, where they work here
if [ "$(id -u)" -eq 0 ]; then
	runc_dir=$tap_dir/runc
	mkdir -p "$runc_dir/rootfs"
	if command -v runc >/dev/null && (cd "$runc_dir" && runc spec); then
		python3 - "$runc_dir/config.json" <<'PY'
import json, sys
c = json.load(open(sys.argv[1]))
c["process"]["terminal"] = False
c["process"]["args"] = ["/bin/sh", "-c", "echo inside; exit 5"]
c["root"] = {"path": "rootfs", "readonly": True}
c["mounts"] += [{"destination": d, "type": "bind", "source": d, "options": ["rbind", "ro"]}
                for d in ("/bin", "/lib", "/lib64", "/usr") ]
json.dump(c, open(sys.argv[1], "w"))
PY
		run --verdict-file "$v" -- runc run -b "$runc_dir" "sw-test-$$" >"$tap_dir/out" 2>"$tap_dir/err"
		status=$?
		if [ $status -eq 5 ]; then
			is "$as: runc: started by its pid file" "$(field "$v" started)" yes
			sed -i 's#/bin/sh#/bin/nosuch#' "$runc_dir/config.json"
			run --verdict-file "$v" -- runc run -b "$runc_dir" "sw-test2-$$" >"$tap_dir/out" 2>&1
			is "$as: runc: no pid file, not started" "$(field "$v" verdict) $(field "$v" started)" "runner_failed no"
			sed -i "s#/bin/nosuch#/bin/sh#; s#echo inside#rm $runc_dir/pid#" "$runc_dir/config.json"
			run --verdict-file "$v" -- runc run -b "$runc_dir" --pid-file "$runc_dir/pid" "sw-test3-$$" >"$tap_dir/out" 2>&1
			is "$as: runc: the caller's own pid file proves nothing" "$(field "$v" started) $(field "$v" evidence)" "unknown text"
		else
			skip "$as: runc: proof of start" "runc does not run here (status $status)"
		fi
	fi
fi

# Engines and systemd that are not there are stood in for by scripts with their records.
if [ "$(id -u)" -eq 0 ]; then
	fake=$tap_dir/fake
	mkdir -p "$fake"
	cat >"$fake/docker" <<'SH'
#!/bin/sh
here=$(dirname "$0")
case $1 in
run)
	echo "$*" >"$here/argv"
	[ "$2" = --cidfile ] || exit 98
	case $* in
	*nocreate*) echo "docker: Error response from daemon: something new." >&2; exit 125 ;;
	*oldcid*) ;;
	*) printf 0123456789abcdef >"$3" ;;
	esac
	case $* in
	*nostart*) echo "docker: Error response from daemon: something new." >&2; exit 127 ;;
	*lost*) kill -9 $$ ;;
	*sleeps*) sleep 20 ;;
	*removes*) rm "$3"; exit 3 ;;
	*fifo*) rm "$3"; mkfifo "$3"; exit 3 ;;
	*linked*) rm "$3"; ln -s /etc/hostname "$3"; exit 3 ;;
	*another*) echo fedcba9876543210 >"$3"; exit 3 ;;
	*moved*) echo fedcba9876543210 >"$here/other"; mv "$here/other" "$3"; exit 3 ;;
	esac
	echo inside
	exit 5
	;;
inspect) cat "$here/state" ;;
events) [ -e "$here/events" ] && cat "$here/events" ;;
kill) echo "$2" >"$here/killed" ;;
esac
SH
	cat >"$fake/systemd-run" <<'SH'
#!/bin/sh
case $1 in --unit=sandwitness-*.service) echo "${1#--unit=}" >"$(dirname "$0")/unit" ;; *) exit 97 ;; esac
exit "$(cat "$(dirname "$0")/exit")"
SH
	cat >"$fake/systemctl" <<'SH'
#!/bin/sh
case $1 in show) cat "$(dirname "$0")/show" ;; reset-failed) echo "$2" >"$(dirname "$0")/reset" ;; esac
SH
	printf '#!/bin/sh\ncat "$(dirname "$0")/journal"\n' >"$fake/journalctl"
	chmod 755 "$fake"/*
	started() { run --verdict-file "$v" -- "$@" >/dev/null 2>&1; printf '%s %s' "$(field "$v" started)" "$(field "$v" evidence_source)"; }
	echo '{"Status":"exited","Running":false,"OOMKilled":false,"StartedAt":"2026-01-01T00:00:00Z"}' >"$fake/state"
	is "docker: a start in the recorded state" "$(started "$fake/docker" run img)" "yes null"
	is "docker: the command line is otherwise unchanged" "$(sed 's/--cidfile [^ ]* //' "$fake/argv")" "run img"
	is "docker: no container, not started" "$(started "$fake/docker" run nocreate)" "no runner-record"
	echo '{"Status":"created","Running":false,"StartedAt":"0001-01-01T00:00:00Z"}' >"$fake/state"
	is "docker: created only, not started" "$(started "$fake/docker" run nostart)" "no runner-record"
	is "docker: also for wording that no signature knows" "$(field "$v" verdict)" runner_failed
	mkdir -m 700 "$tap_dir/runtime"
	export XDG_RUNTIME_DIR=$tap_dir/runtime
	for what in removes fifo linked another moved; do
		isnt "docker: a record that was changed ($what) never proves that nothing was started" \
			"$(started "$fake/docker" run $what)" "no runner-record"
		rm -f "$tap_dir/cid"
		is "docker: the caller's own record proves nothing ($what)" \
			"$(started "$fake/docker" run --cidfile "$tap_dir/cid" $what)" "unknown null"
	done
	is "docker: no folder for records is left" "$(ls "$tap_dir/runtime")" ""
	unset XDG_RUNTIME_DIR
	: >"$fake/state"
	printf 'create\nstart\ndie\n' >"$fake/events"
	is "docker: removed: the events tell" "$(started "$fake/docker" run --rm img)" "yes null"
	rm "$fake/events"
	is "docker: nothing is left: unknown" "$(started "$fake/docker" run --rm img)" "unknown null"
	echo '{"Status":"exited","Running":false,"OOMKilled":true,"StartedAt":"2026-01-01T00:00:00Z"}' >"$fake/state"
	started "$fake/docker" run img >/dev/null
	is "docker: OOMKilled is proof of a memory limit" "$(field "$v" limit.limit) $(field "$v" limit.certainty)" "memory proven"
	echo '{"Status":"running","Running":true,"StartedAt":"2026-01-01T00:00:00Z"}' >"$fake/state"
	started "$fake/docker" run lost >/dev/null
	is "docker: the client is gone, the container runs: lost" "$(field "$v" verdict) $(field "$v" stage)" "runner_failed lost"
	is "docker: and the container is ended" "$(cat "$fake/killed")" 0123456789abcdef

	printf 'LoadState=loaded\nExecMainPID=77\nExecMainCode=1\nExecMainStatus=5\nResult=exit-code\n' >"$fake/show"
	echo 5 >"$fake/exit"
	is "systemd-run: the unit's result" "$(started "$fake/systemd-run" --wait true)" "yes null"
	is "systemd-run: our unit is tidied up" "$(cat "$fake/reset")" "$(cat "$fake/unit")"
	printf 'LoadState=loaded\nExecMainPID=77\nExecMainCode=1\nExecMainStatus=226\nResult=exit-code\n' >"$fake/show"
	echo 226 >"$fake/exit"
	: >"$fake/journal"
	is "systemd-run: 226 may be the command's own" "$(started "$fake/systemd-run" --wait true)" "unknown null"
	echo 'x.service: Failed at step NAMESPACE spawning true: No such file or directory' >"$fake/journal"
	is "systemd-run: unless the journal says that a step failed" "$(started "$fake/systemd-run" --wait true)" "no runner-record"
	: >"$fake/killed"
	echo 0000000000000000 >"$tap_dir/oldcid"
	run --deadline 1s -- "$fake/docker" run --cidfile "$tap_dir/oldcid" sleeps >/dev/null 2>&1
	is "docker: a container that an old record names is not ended" "$(cat "$fake/killed")" ""
	rm -f "$tap_dir/cid"
	run --deadline 1s -- "$fake/docker" run --cidfile "$tap_dir/cid" sleeps >/dev/null 2>&1
	is "docker: one of the caller's own record is" "$(cat "$fake/killed")" 0123456789abcdef
	chmod 757 "$fake/docker"
	is "docker: a client that others can change proves nothing" "$(started "$fake/docker" run --cidfile=/nonexistent/x img | cut -d' ' -f1)" unknown
fi

# The same as a plain user.
if [ "$(id -u)" -eq 0 ] && [ -z "${SW_TEST_AS:-}" ]; then
	as_plain_user "$script" SW_TEST_AS=user SW_VICTIM="$victim" >"$tap_dir/user.tap" 2>"$tap_dir/user.err"
	take_tap "$tap_dir/user.tap"
fi
done_testing
