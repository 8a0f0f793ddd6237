"""The programs as they are: each confines the process that reads what may be hostile, and still
works; `run` and what it starts are never confined. Judged by strace and by /proc."""
import ctypes
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.environ.get("SW_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("SW_BUILD_DIR") or os.path.join(ROOT, "build")
CLI = os.environ.get("SANDWITNESS") or os.path.join(BUILD, "sandwitness")
DAEMON = os.environ.get("SANDWITNESSD") or os.path.join(BUILD, "sandwitnessd")
LANDLOCK = ctypes.CDLL(None).syscall(444, None, 0, 1) >= 1
count = failed = 0


def ok(good, name, *detail):
    global count, failed
    count += 1
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good:
        failed += 1
        for d in detail:
            print("#   " + str(d)[:800].replace("\n", "\n#   "), flush=True)


work = tempfile.mkdtemp(prefix="sandwitness-trust.", dir="/var/tmp")
for d in ("state", "config", "run", "tmp"):
    os.mkdir(os.path.join(work, d), 0o700)
env = dict(os.environ, XDG_STATE_HOME=work + "/state", XDG_CONFIG_HOME=work + "/config", XDG_RUNTIME_DIR=work + "/run",
           SANDWITNESS_CONFIG="", TMPDIR=work + "/tmp", LC_ALL="C.UTF-8")
env.pop("SANDWITNESS_NO_SELF_SANDBOX", None)
db = work + "/trail.db"
log = work + "/strace"


def sw(*args, data=b"", **more):
    return subprocess.run([CLI, *args], input=data, capture_output=True, env=dict(env, **more.pop("env", {})), timeout=60, **more)


def traced(*args, data=b""):
    """The calls that confine, in the order they came, and how the program ended."""
    p = subprocess.run(["strace", "-f", "-qq", "-e", "trace=prctl,seccomp,landlock_restrict_self", "-o", log, CLI, *args],
                       input=data, capture_output=True, env=env, timeout=60)
    with open(log) as f:
        return p, f.read()


def prepare():
    line = json.dumps({"backend": "bwrap", "exit": 1, "output": "bwrap: setting up uid map: Permission denied\n"})
    p = sw("record", "--db", db, data=(line + "\n").encode() * 3)
    ok(p.returncode == 0, "a trail to read", p.stderr)


def built_without():
    p, text = traced("classify", "--backend", "bwrap", "--exit", "1", "-", data=b"x\n")
    return "PR_SET_NO_NEW_PRIVS" not in text


def readers():
    verbs = [("classify", ["classify", "--backend", "bwrap", "--exit", "1", "-"], b"x\n"),
             ("classify --batch", ["classify", "--batch", "-"], b'{"backend":"bwrap","exit":1,"output":"x"}\n'),
             ("explain", ["explain", "--backend", "bwrap", "--exit", "1", "-"], b"x\n"),
             ("report", ["report", "--db", db], b""), ("report failures", ["report", "failures", "--db", db], b""),
             ("invocations", ["invocations", "--db", db], b""), ("invocations --json", ["invocations", "--json", "--db", db], b""),
             ("verify", ["verify", "--db", db], b""), ("export", ["export", "--db", db], b""),
             ("export --csv", ["export", "--csv", "--db", db], b""),
             ("export --out", ["export", "--out", work + "/out.ndjson", "--db", db], b""),
             ("verify of an export", ["verify", work + "/out.ndjson"], b"")]
    for name, args, data in verbs:
        p, text = traced(*args, data=data)
        plain = [a.replace("out.ndjson", "plain.ndjson") if "--out" in args else a for a in args]
        q = sw(*plain, "--no-self-sandbox", data=data)
        walls = ["prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER"] + (["landlock_restrict_self"] if LANDLOCK else [])
        ok(all(w in text for w in walls) and "= -1" not in text,
           f"{name}: confined by {'Landlock and ' if LANDLOCK else ''}seccomp", text, p.stderr)
        ok(p.stdout == q.stdout and p.returncode == q.returncode and p.stderr == q.stderr,
           f"{name}: the same answer as without", p.returncode, q.returncode, p.stdout[-200:], q.stdout[-200:], p.stderr[-200:])
        _, off = traced(*plain[:-1], plain[-1], "--no-self-sandbox", data=data) if "--out" not in args else (None, "")
        ok("PR_SET_SECCOMP" not in off, f"{name}: --no-self-sandbox leaves it as it is", off)
    ok(os.listdir(work + "/tmp") == [], "nothing is left in the folder for temporary files", os.listdir(work + "/tmp"))


def errors():
    p = sw("export", "--out", work + "/none.ndjson", "--db", work + "/none.db")
    ok(p.returncode != 0 and not os.path.exists(work + "/none.ndjson"), "a failed export leaves no file", p.stderr)
    with open(work + "/there", "w") as f:
        f.write("mine\n")
    p = sw("export", "--out", work + "/there", "--db", db)
    with open(work + "/there") as f:
        ok(p.returncode != 0 and f.read() == "mine\n", "an existing file is neither overwritten nor removed", p.stderr)
    p = sw("report", "nosuch", "--db", db)
    ok(p.returncode not in (0, -31) and p.stderr, "an error keeps its status and words", p.returncode, p.stderr)
    with open(work + "/broken.db", "wb") as f:
        f.write(b"SQLite format 3\0" + os.urandom(8000))
    p = sw("verify", "--db", work + "/broken.db")
    ok(p.returncode > 0 and b"signal" not in p.stderr, "a broken trail is refused, nothing dies", p.returncode, p.stderr)
    with open("/dev/full", "w") as nowhere:
        full = subprocess.run([CLI, "export", "--db", db], stdout=nowhere, stderr=subprocess.PIPE, env=env)
    ok(full.returncode == 2, "a full disk below stdout is status 2", full.returncode, full.stderr)
    q = subprocess.run(f"'{CLI}' export --db '{db}' | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}", shell=True,
                       executable="/bin/bash", capture_output=True, text=True, env=env)
    ok(q.stdout.strip() in ("0", "2", "141"), "a reader that has gone", q.stdout, q.stderr)


def others():
    """What starts programs must not be confined: its children would be."""
    p, text = traced("run", "--audit=off", "--", "sh", "-c", "grep -E 'Seccomp:|NoNewPrivs' /proc/self/status")
    ok(re.findall(rb"(\w+):\s+(\d)", p.stdout) == [(b"NoNewPrivs", b"0"), (b"Seccomp", b"0")],
       "run: the command is not confined by us", p.stdout, p.stderr)
    ok("landlock_restrict_self" not in text, "run: nor is run", text)


def status_field(pid, name):
    with open(f"/proc/{pid}/status") as f:
        m = re.search(rf"^{name}:\s*(\S+)", f.read(), re.M)
    return m and m.group(1)


def get(path, target, method="GET", body=None):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(30)
    s.connect(path)
    head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    if body is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    s.sendall((head + "\r\n" + (body or "")).encode())
    data = b""
    while True:
        piece = s.recv(65536)
        if not piece:
            break
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    if b"chunked" in head.lower():
        out = b""
        while rest:
            n, _, rest = rest.partition(b"\r\n")
            out, rest = out + rest[:int(n, 16)], rest[int(n, 16) + 2:]
        rest = out
    return int(head.split()[1]), rest


def service(expect):
    sock = work + "/run/s.sock"
    d = subprocess.Popen([DAEMON, "--db", work + "/service.db", "--listen", "unix:" + sock, "--probe-age", "0s"] + ([] if expect else ["--no-self-sandbox"]),
                         env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    what = "service" if expect else "service, --no-self-sandbox"
    for _ in range(100):
        if os.path.exists(sock):
            break
        time.sleep(0.05)
    time.sleep(0.3)
    try:
        tasks = os.listdir(f"/proc/{d.pid}/task")
        seen = {(status_field(f"{d.pid}/task/{t}", "Seccomp"), status_field(f"{d.pid}/task/{t}", "NoNewPrivs")) for t in tasks}
        ok(seen == ({("2", "1")} if expect else {("0", "0")}), f"{what}: every one of its {len(tasks)} threads", seen)
        code, body = get(sock, "/v1/invocations", "POST", json.dumps({"backend": "bwrap", "exit": 0, "output": ""}))
        ok(code == 201, f"{what}: records", code, body)
        code, body = get(sock, "/v1/reports/summary")
        ok(code == 200 and b'"rows"' in body, f"{what}: reports", code, body)
        code, body = get(sock, "/v1/status?probe=bwrap")
        j = json.loads(body) if code == 200 else {}
        b = next((x for x in j.get("backends", []) if x["id"] == "bwrap"), {})
        cli = json.loads(sw("status", "--probe=bwrap", "--json").stdout or b"{}")
        c = next((x for x in cli.get("backends", []) if x["id"] == "bwrap"), {})
        ok(code == 200 and b.get("probe", {}).get("result") == c.get("probe", {}).get("result"),
           f"{what}: proves the same about bwrap as the command line ({b.get('probe', {}).get('result')})", code, body[:300], cli.get("error"))
        code, body = get(sock, "/v1/status?probe=nosuch")
        ok(code in (400, 404, 422), f"{what}: an unknown backend is refused", code, body)
    finally:
        d.terminate()
        try:
            d.wait(20)
        except subprocess.TimeoutExpired:
            d.kill()
    ok(d.returncode == 0, f"{what}: ends well", d.returncode, d.stderr.read()[-400:])
    ok(not os.path.exists(sock), f"{what}: removes its socket")


def main():
    if not shutil.which("strace"):
        print("1..0 # SKIP no strace")
        sys.exit(77)
    prepare()
    bare = built_without()
    if bare:
        print("# built without confinement (sanitizers): only that all works is tested")
    else:
        readers()
        others()
        service(True)
    errors()
    service(False)


try:
    main()
finally:
    shutil.rmtree(work, ignore_errors=True)
print(f"1..{count}")
sys.exit(1 if failed else 0)
