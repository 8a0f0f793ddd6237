"""Commands that imitate runner failures, denials and notices, or meddle with the proof of start.

Each row of ATTACKS runs under a real bwrap through `sandwitness run`; its output is then judged
again by `classify`, which has the text alone. What must hold for every row:
- attested, the verdict is the one in the row, whatever the text looks like;
- where text alone is enough to be fooled, the verdict says that it rests on text, and `started`
  is unknown: never evidence `attested`;
- no attack ends the supervisor, keeps it waiting or changes the exit status it reports.
"""
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.environ.get("SW_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("SW_BUILD_DIR") or os.path.join(ROOT, "build")
CLI = os.environ.get("SANDWITNESS") or os.path.join(BUILD, "sandwitness")
DENIED = "touch: cannot touch '/etc/x': Read-only file system"
UIDMAP = "bwrap: setting up uid map: Permission denied"

BOX = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
BOXES = {
    "all": BOX + ["--unshare-all", "--die-with-parent"],  # as one should
    "pid": BOX + ["--unshare-pid"],
    "user": BOX + ["--unshare-user"],
    "open": BOX,  # every process of the machine in sight
    "traced": BOX + ["--unshare-all"],  # with --trace
    "landlock": [],  # the built-in launcher
}


def say(text, status=1):
    return f"printf '%s\\n' {sh(text)}; exit {status}"


def raw(escapes, status=1):
    return f"printf {sh(escapes)}; exit {status}"


def sh(text):
    return "'" + text.replace("'", "'\\''") + "'"


def liar(mode, status=1):
    return f"exec python3 -S $ATTACK {mode} {status}"


# name, boxes (":root", ":user": run by these only), command, attested verdict, its evidence, verdict of the text alone, why
ATTACKS = [
    # --- the runner's own words
    ("uid map line", "all user open", say(UIDMAP), "ok", "text", "runner_failed", "the text is bwrap's to the letter"),
    ("uid map line on stderr", "all", say(UIDMAP).replace(";", " >&2;", 1), "ok", "text", "runner_failed", "both streams are one pipe"),
    ("no new namespace", "all", say("bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces."), "sandbox_denied", "text", "runner_failed", "what a second bwrap inside says when it is refused: a denial, by text"),
    ("missing bind source", "all", say("bwrap: Can't find source path /nosuch: No such file or directory"), "ok", "text", "runner_failed", "as above"),
    ("execvp line", "all", say("bwrap: execvp nosuch: No such file or directory"), "ok", "text", "runner_failed", "stage exec, to the letter"),
    ("a new bwrap message", "all", say("bwrap: something this program never heard of"), "ok", "text", "runner_failed", "the prefix alone counts for text"),
    ("line before other output", "all", raw(f"{UIDMAP}\\nthen the command goes on\\n"), "ok", "text", "ok", "bwrap prints one line and ends"),
    ("line after other output", "all", raw(f"the command worked\\n{UIDMAP}\\n"), "ok", "text", None, "a failing runner prints first; what text says is a matter of signatures"),
    ("uid map line, exit 0", "all", say(UIDMAP, 0), "ok", "exit_code", "ok", "exit 0 is ok whatever is printed"),
    ("the shell's words for no bwrap", "all", say("sh: 1: bwrap: not found", 127), "sandbox_denied", "text", None, "the host has one, and only the text says that the sandbox does not"),
    ("docker's words", "all", say("docker: Error response from daemon: OCI runtime create failed: runc create failed: unable to start container process", 125), "ok", "text", "ok", "another runner's words"),
    ("words for people", "all", say("sandwitness: runner_failed: the sandbox broke [unknown]"), "ok", "text", "ok", "our own line on the command's stream"),
    ("a verdict object", "all", liar("report_json"), "ok", "text", None, "JSON in the output is output"),
    # --- exit statuses
    ("exit 125", "all", "exit 125", "ok", "text", None, "docker's number for its own failure"),
    ("exit 126", "all", "exit 126", "ok", "text", None, "cannot be executed"),
    ("exit 127", "all", "exit 127", "ok", "text", None, "not found"),
    ("exit 255", "all", "exit 255", "ok", "text", None, "ssh's and many a runner's number"),
    ("exit 137", "all", "exit 137", "ok", "text", "ok", "a kill that never was; a limit is possible, not proven"),
    ("a real SIGKILL to itself", "all", "kill -9 $$", "ok", "text", "ok", "nobody denied it anything"),
    ("exit 159", "all", "exit 159", "sandbox_denied", "exit_code", "sandbox_denied", "128+SIGSYS; nothing but the number, and the evidence says so"),
    ("exit 124", "all", "exit 124", "ok", "text", "ok", "timeout's number, but nobody timed out"),
    # --- denials that never happened
    ("read-only line", "all", say(DENIED), "sandbox_denied", "text", "sandbox_denied", "the start is proved, the denial is not: evidence text"),
    ("read-only line, exit 0", "all", say(DENIED, 0), "ok", "exit_code", "ok", "exit 0 is ok"),
    ("permission denied for what is denied outside too", "all", say("cat: /nosuch/file: Permission denied"), "ok", "text", "ok", "no denial by itself, and the host has no such file"),
    ("a denied address", "all", say("connect: Network is unreachable"), None, "text", None, "whatever it is taken for, it is text"),
    # --- notices
    ("a fake downgrade notice", "all", say("sandwitness-landlock: downgrade: network not restricted"), "ok", "text", None, "a notice of a runner that does not run here"),
    ("docker's downgrade notice", "all", say("WARNING: Your kernel does not support swap limit capabilities or the cgroup is not mounted. Memory limited without swap."), "ok", "text", "ok", "as above"),
    # --- terminal tricks
    ("colour before the line", "all", raw(f"\\033[31m{UIDMAP}\\033[0m\\n"), "ok", "text", "runner_failed", "escapes are skipped, so it is the line"),
    ("CR overwrites", "all", raw(f"working 10%%\\r{UIDMAP}\\r\\n"), "ok", "text", None, "a CR begins a segment with its own column 0"),
    ("screen cleared", "all", raw(f"hello\\n\\033[2J\\033[H{UIDMAP}\\n"), "ok", "text", None, "what a person sees is not what is judged"),
    ("line in a window title", "all", raw(f"\\033]0;{UIDMAP}\\007\\n"), "ok", "text", "ok", "an OSC is skipped whole"),
    ("unterminated OSC", "all", raw(f"\\033]0;\\n{UIDMAP}\\n"), "ok", "text", None, "it loses its ESC only, and swallows no line"),
    ("DCS around the line", "all", raw(f"\\033P{UIDMAP}\\033\\\\\\n"), "ok", "text", "ok", "skipped whole"),
    ("backspaces", "all", raw(f"xxxx\\b\\b\\b\\b{UIDMAP}\\n"), "ok", "text", "ok", "not at column 0"),
    ("concealed denial", "all", raw(f"\\033[8m{DENIED}\\033[0m\\n".replace("'", "")), "sandbox_denied", "text", "sandbox_denied", "hidden from people, not from the scan"),
    # --- letters that look alike
    ("Cyrillic a", "all", say("bwr\u0430p: setting up uid map: Permission denied"), "ok", "text", "ok", "bytes are compared, not shapes"),
    ("fullwidth letters", "all", say("\uff42\uff57\uff52\uff41\uff50: setting up uid map: Permission denied"), "ok", "text", "ok", "as above"),
    ("zero-width space", "all", say("bwrap\u200b: setting up uid map: Permission denied"), "ok", "text", "ok", "as above"),
    ("byte order mark", "all", say("\ufeff" + UIDMAP), "ok", "text", "ok", "not at column 0"),
    ("look-alike hyphen in a denial", "all", say("touch: cannot touch /etc/x: Read\u2011only file system"), "ok", "text", "ok", "as above"),
    ("UTF-16 LE", "all", liar("utf16le"), "ok", "text", "ok", "no such bytes in any runner's line here"),
    ("UTF-16 BE with mark", "all", liar("utf16be"), "ok", "text", "ok", "as above"),
    ("NUL in the prefix", "all", raw(f"bwrap\\000{UIDMAP[5:]}\\n"), "ok", "text", "ok", "NUL is a byte like others, and ends nothing"),
    ("NUL before the line", "all", raw(f"\\000{UIDMAP}\\n"), "ok", "text", "ok", "not at column 0"),
    ("invalid UTF-8 in the line", "all", raw("bwrap: setting up uid map: \\377\\376 Permission denied\\n"), "ok", "text", "runner_failed", "the prefix is there; the rest may be any bytes"),
    ("blank before the line", "all", say(" " + UIDMAP), "ok", "text", "ok", "white space is never trimmed"),
    # --- size and time
    ("1 MiB before, same line", "all", liar("one_line_mib"), "ok", "text", "ok", "not at column 0"),
    ("1 MiB of lines before", "all", liar("lines_mib"), "ok", "text", None, "nothing is forgotten, nothing is kept"),
    ("a line of 5 MiB with the prefix", "all", liar("one_line_huge"), "ok", "text", "ok", "a whole-line rule never matches a line that long"),
    ("byte by byte", "all", liar("splits"), "ok", "text", "runner_failed", "pieces make no difference"),
    ("a denial in pieces", "all", liar("split_denial"), "sandbox_denied", "text", "sandbox_denied", "as above"),
    ("a denial in 1.2 MB of noise", "all", liar("denial_in_noise"), "sandbox_denied", "text", "sandbox_denied", "noise hides nothing"),
    ("no newline at the end", "all", liar("no_newline"), "ok", "text", "runner_failed", "the end ends a line"),
    # --- those who stay
    ("a child writes after the exit", "open all", liar("after_exit"), "ok", "text", None, "in its own pid namespace it dies with the command; else it is heard, as output"),
    ("a flood after the exit", "open", liar("flood_after_exit"), "ok", "text", None, "cut after 200 ms"),
    ("a daemon that ignores signals", "open", liar("daemon"), "ok", "text", "runner_failed", "ended by the supervisor"),
    ("a child speaks and the parent ends", "all", liar("vanish"), "ok", "text", "runner_failed", "the status is the command's"),
    # --- descriptors
    ("status JSON on every descriptor", "all pid user open", liar("every_descriptor"), "ok", "text", "runner_failed", "the command has 0, 1 and 2 only"),
    ("/proc/self/fd", "all open", liar("own_proc"), "ok", "text", "runner_failed", "nothing of ours is there"),
    ("/proc/PID/fd of the parents", "all pid user open", liar("proc_of_parents"), "ok", "text", "runner_failed", "a socket cannot be opened again"),
    ("pidfd_getfd and write", "user open", liar("stolen_write"), "ok", "text", "runner_failed", "the sender is not the runner"),
    ("pidfd_getfd and shut down", "user open:user", liar("stolen_shut"), "ok", "text", "runner_failed", "silence is no proof then"),
    ("pidfd_getfd and shut down, by root", "open:root", liar("stolen_shut"), "runner_failed", "attested", None, "the runner dies of SIGPIPE: it really was lost, as if it had been killed"),
    ("pidfd_getfd and flood", "user open", liar("stolen_flood"), "ok", "text", "runner_failed", "other senders' words are dropped"),
    ("forged credentials", "user", liar("stolen_forged_credentials"), "ok", "text", "runner_failed", "the kernel refuses them"),
    ("everything closed", "all open", liar("close_all"), "ok", "text", "runner_failed", "the proof is not in its hands"),
    ("closed and replaced", "all", liar("close_then_write"), "ok", "text", "ok", "silence"),
    ("the runner's name", "all open", liar("look_like_the_runner"), "ok", "text", "runner_failed", "a name is no program"),
    # --- under other proofs
    ("read-only line, traced", "traced", say(DENIED), "ok", "text", "sandbox_denied", "no call failed like that: withdrawn"),
    ("not permitted line, traced", "traced", say("chown: changing ownership of '/etc/x': Operation not permitted"), "ok", "text", None, "as above"),
    ("uid map line, traced", "traced", say(UIDMAP), "ok", "text", "runner_failed", "the trace changes nothing about the start"),
    ("uid map line under Landlock", "landlock", say(UIDMAP), "sandbox_denied", "text", None, "the exec pipe has ended, so it is the command's, where it reads as a denial"),
    ("the launcher's own words", "landlock", say("sandwitness: landlock: cannot restrict this process: Operation not permitted"), "sandbox_denied", "text", None, "not the launcher's, so the command's, where it reads as a denial"),
    ("everything closed under Landlock", "landlock", liar("close_all"), "ok", "text", None, "the pipe ended with execve, not with the command"),
    ("status JSON under Landlock", "landlock", liar("every_descriptor"), "ok", "text", None, "nothing of ours is open"),
    ("/proc/PID/fd under Landlock", "landlock", liar("proc_of_parents"), "ok", "text", None, "the supervisor is not dumpable"),
    # --- violence
    ("kill pid 1 of the namespace", "all", liar("kill_init"), "ok", "text", "runner_failed", "init ignores what comes from inside"),
    ("kill the parent", "pid", liar("kill_parent"), "ok", "text", "runner_failed", "the parent is init"),
    ("kill the runner", "open", liar("kill_runner"), "runner_failed", "attested", None, "the runner really was lost, over a command that ran"),
    ("kill the runner after an order to the supervisor", "open", liar("term_both"), "runner_failed", "attested", None, "a signal that was passed on to the command is no excuse for the runner's end"),
    ("the same by one who cannot be looked at", "open", liar("term_unseen"), "runner_failed", "attested", None, "nor is one whose sender may have been the command"),
    ("kill the runner and leave a daemon", "open", liar("kill_runner_and_stay"), "runner_failed", "attested", None, "what is killed after the runner's end does not explain it"),
    ("kill the runner and take its number", "open:root", liar("take_number"), "runner_failed", "attested", None, "the end of who has the number then is not the runner's"),
    ("take the supervisor's descriptors", "open", liar("take_files"), "ok", "text", "runner_failed", "it reads what it has, and hangs on nothing"),
    ("ptrace the runner", "user open", liar("trace_runner"), "ok", "text", "runner_failed", "held and let go; see the limits in docs/security.md"),
]


class Tap:
    count = failed = 0

    def ok(self, good, name, *detail):
        Tap.count += 1
        print(f"{'ok' if good else 'not ok'} {Tap.count} - {name}", flush=True)
        if not good:
            Tap.failed += 1
            for d in detail:
                print("#   " + str(d)[:600].replace("\n", "\n#   "), flush=True)

    def done(self):
        print(f"1..{Tap.count}")
        sys.exit(1 if Tap.failed else 0)


tap = Tap()
work = tempfile.mkdtemp(prefix="sandwitness-redteam.", dir="/var/tmp")
os.chmod(work, 0o755)
for d in ("state", "config", "run"):
    os.mkdir(os.path.join(work, d), 0o755)
attack = os.path.join(work, "attack.py")
shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "attack.py"), attack)
cli = os.path.join(work, "sandwitness")
shutil.copy(CLI, cli)
os.chmod(cli, 0o755)
os.chmod(attack, 0o644)
env = dict(os.environ, ATTACK=attack, LC_ALL="C.UTF-8", XDG_STATE_HOME=work + "/state", XDG_CONFIG_HOME=work + "/config",
           XDG_RUNTIME_DIR=work + "/run", SANDWITNESS_CONFIG="")
# the leak checker cannot work in a process that is followed
env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"


def usable():
    p = subprocess.run(BOXES["all"] + ["true"], stdin=subprocess.DEVNULL, capture_output=True)
    return p.returncode == 0


def judge(args, data=b"", user=None, **more):
    p = subprocess.run([cli, *args], input=data, capture_output=True, env=env, timeout=60, user=user, cwd="/", **more)
    try:
        return p, json.loads(p.stderr if b'"schema"' not in p.stdout else p.stdout)
    except ValueError:
        return p, {}


def under(box, command, user):
    """The verdict by --verdict-file, and the output as it came."""
    name = os.path.join(work, f"verdict-{user or 0}.json")
    if os.path.exists(name):
        os.unlink(name)
    # the folder must be the user's: the file is renamed into place
    folder = os.path.join(work, f"v{user or 0}")
    os.makedirs(folder, exist_ok=True)
    if user:
        os.chown(folder, user, -1)
    name = os.path.join(folder, "verdict.json")
    if os.path.exists(name):
        os.unlink(name)
    t = time.monotonic()
    how = {"traced": ["--trace"], "landlock": ["--sandbox", "read_only", "--backend", "landlock", "--readable", work]}.get(box, [])
    p = subprocess.run([cli, "run", "--audit=off", "--verdict-file", name, *how, "--", *BOXES[box], "sh", "-c", command],
                       stdin=subprocess.DEVNULL, capture_output=True, env=env, timeout=60, user=user, cwd=folder if box == "landlock" else "/")
    took = time.monotonic() - t
    try:
        with open(name) as f:
            v = json.load(f)
    except (OSError, ValueError):
        v = {}
    return p, v, took


def one(row, box, user):
    name, _, command, verdict, evidence, of_text, why = row
    who = "root" if not user else "user"
    p, v, took = under(box, command, user)
    lost = verdict == "runner_failed"
    good = (v.get("verdict") == (verdict or v.get("verdict")) and v.get("started") == "yes" and v.get("evidence") == evidence
            and v.get("downgrades") == [] and took < 20 and v.get("run", {}).get("status") == p.returncode)
    if v.get("verdict") == "runner_failed":
        good = good and lost and v.get("stage") == "lost"
    tap.ok(good, f"{name} [{box}, {who}]: {v.get('verdict')}, {why}",
           json.dumps({k: v.get(k) for k in ("verdict", "stage", "cause", "evidence", "evidence_source", "started", "exit", "downgrades", "line")}),
           f"wanted {verdict}, {evidence}; status {p.returncode}, {took:.1f} s", p.stderr[-300:])
    return p


def text_alone(row, output, status):
    name, _, _, _, _, of_text, why = row
    _, v = judge(["classify", "--backend", "bwrap", "--exit", str(status), "--json", "-"], output)
    good = v.get("started") == "unknown" and v.get("evidence") in ("text", "exit_code") and (of_text is None or v.get("verdict") == of_text)
    tap.ok(good, f"{name} [text alone]: {v.get('verdict')}, evidence {v.get('evidence')}",
           json.dumps({k: v.get(k) for k in ("verdict", "cause", "evidence", "started", "line", "signature")}), f"wanted {of_text}")


def supervisor_killed():
    """Then there is no verdict at all, and the trail shows a run without an end."""
    db = os.path.join(work, "state", "killed.db")
    p = subprocess.run([cli, "run", "--db", db, "--", *BOXES["open"], "--die-with-parent", "sh", "-c", liar("kill_supervisor", 0)],
                       stdin=subprocess.DEVNULL, capture_output=True, env=env, timeout=60)
    tap.ok(p.returncode == -9, "kill the supervisor: it is gone, and no exit status of the command's stands for it", p.returncode, p.stderr)
    q = subprocess.run([cli, "report", "unfinished", "--json", "--db", db], capture_output=True, env=env, timeout=60)
    rows = json.loads(q.stdout or b"{}").get("rows", [])
    tap.ok(len(rows) == 1, "kill the supervisor: the trail names a run that never ended", q.stdout, q.stderr)


def verdict_file_in_the_workspace():
    """The command may write the folder that the verdict goes to: nothing outside may be hit."""
    precious, w = os.path.join(work, "precious"), os.path.join(work, "workspace")
    os.makedirs(w + "/d")
    ways = [("a link in its place", "v.json", f"ln -s {precious} {w}/v.json"),
            ("a link for its folder", "d/precious", f"mv {w}/d {w}/e; ln -s {work} {w}/d"),
            ("a FIFO in its place", "f.json", f"mkfifo {w}/f.json")]
    for name, target, command in ways:
        with open(precious, "w") as f:
            f.write("precious\n")
        p = subprocess.run([cli, "run", "--audit=off", "--verdict-file", f"{w}/{target}", "--", *BOX, "--bind", w, w,
                            "--unshare-all", "sh", "-c", command + "; exit 5"], stdin=subprocess.DEVNULL, capture_output=True,
                           env=env, timeout=20)
        with open(precious) as f:
            kept = f.read()
        real = os.path.join(w, target.replace("d/", "e/"))
        ok = p.returncode == 5 and kept == "precious\n" and os.path.isfile(real) and not os.path.islink(real)
        with open(real if ok else os.devnull) as f:
            ok = ok and json.load(f)["exit"] == 5
        tap.ok(ok, f"verdict file: {name} leads nowhere", p.returncode, kept[:80], p.stderr)


def verdict_fifo_in_the_workspace():
    """The reader of the FIFO that was there at the start gets the verdict; another FIFO keeps nobody waiting."""
    w = os.path.join(work, "fifos")
    os.makedirs(w)
    ways = [("replaced by another FIFO", f"mv {w}/v {w}/old; mkfifo {w}/v", 0, True),
            ("filled to the brim", f"exec 9<>{w}/v; head -c 65536 /dev/zero >&9; sleep 1", 1, False),
            ("left alone", "true", 0, True), ("without a reader", "true", 2, False)]
    for name, command, reader, served in ways:
        for f in os.listdir(w):
            os.unlink(os.path.join(w, f))
        os.mkfifo(f"{w}/v")
        # 0: reads; 1: holds it open and does not read; 2: nobody
        fd = os.open(f"{w}/v", os.O_RDONLY | os.O_NONBLOCK) if reader < 2 else -1
        t = time.monotonic()
        p = subprocess.run([cli, "run", "--audit=off", "--verdict-file", f"{w}/v", "--", *BOX, "--bind", w, w, "--unshare-all",
                            "sh", "-c", command + "; exit 5"], stdin=subprocess.DEVNULL, capture_output=True, env=env, timeout=30)
        took = time.monotonic() - t
        text = os.read(fd, 1 << 20) if reader == 0 else b""
        if fd >= 0:
            os.close(fd)
        ok = p.returncode == 5 and took < 12 and (b'"schema"' in text) == served and (served or b"nobody read the FIFO" in p.stderr)
        tap.ok(ok, f"verdict FIFO {name}: {'served' if served else 'given up in time'}", p.returncode, took, text[:80], p.stderr)


def main():
    if not shutil.which("bwrap") or not usable():
        print("1..0 # SKIP no bwrap that works here")
        sys.exit(77)
    users = [None]
    if os.geteuid() == 0:
        try:
            nobody = pwd.getpwnam("nobody").pw_uid
            if subprocess.run(BOXES["all"] + ["true"], capture_output=True, user=nobody, cwd="/").returncode == 0:
                users.append(nobody)
        except KeyError:
            pass
    tap.ok(len(ATTACKS) >= 40 and len({r[0] for r in ATTACKS}) == len(ATTACKS), f"{len(ATTACKS)} attacks, each its own")
    p, v, _ = under("landlock", "exit 7", None)
    landlock = v.get("started") == "yes" and p.returncode == 7
    for row in ATTACKS:
        p = None
        if row[1] == "landlock" and not landlock:
            Tap.count += 1
            print(f"ok {Tap.count} - {row[0]} # SKIP no Landlock here")
            continue
        for spec in row[1].split():
            box, _, only = spec.partition(":")
            for user in users:
                root = user is None and os.geteuid() == 0
                if only and root != (only == "root"):
                    continue
                p = one(row, box, user)
        if p:
            text_alone(row, p.stdout, p.returncode)
    supervisor_killed()
    verdict_file_in_the_workspace()
    verdict_fifo_in_the_workspace()


try:
    main()
finally:
    shutil.rmtree(work, ignore_errors=True)
tap.done()
