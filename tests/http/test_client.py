"""The command line against a running service gives what it gives against the file."""
import json
import os
import subprocess

from service import CLI, Service, Tap, record

tap = Tap()
s = Service()
SERVER = "unix:" + s.path


def cli(*args, stdin=None, env=None):
    return subprocess.run([CLI, *map(str, args)], input=stdin, capture_output=True, env=dict(s.env, **(env or {})), timeout=60)


def same(name, *args):
    a, b = cli(*args, "--server", SERVER), cli(*args, "--db", s.db)
    tap.ok(a.returncode == b.returncode == 0 and a.stdout == b.stdout and a.stdout, name, a.returncode, a.stdout[:300], a.stderr[:300], b.stdout[:300])


lines = [record(i, exit=i % 3 and 1, output="touch: cannot touch '/etc/x': Read-only file system\n", labels={"k": "v w"}) for i in range(250)]
text = "".join(json.dumps(x) + "\n" for x in lines).encode()
p = cli("record", "--server", SERVER, stdin=text)
tap.equal((p.returncode, p.stdout), (0, b"recorded 250 (0 replayed), refused 0\n"), "record")
p = cli("record", "--server", SERVER, stdin=text)
tap.equal((p.returncode, p.stdout), (0, b"recorded 250 (250 replayed), refused 0\n"), "the same again is a replay")
p = cli("record", "--server", SERVER, "--json", stdin=json.dumps(record(900)).encode() + b"\nnonsense\n[1]\n" + json.dumps(record(1, exit=9)).encode() + b"\n" + json.dumps(record(901, colour=1)).encode() + b"\n")
out = [json.loads(x) for x in p.stdout.splitlines()]
tap.ok(p.returncode == 1 and len(out) == 5 and out[0]["id"] == "test-900" and all("error" in o for o in out[1:]) and out[3]["conflict"] is True, "bad lines are named, the others recorded, in order", p.returncode, p.stdout, p.stderr)
big = json.dumps(record(902, output="x" * (6 << 20))).encode() + b"\n" + json.dumps(record(903)).encode() + b"\n"
p = cli("record", "--server", SERVER, stdin=big)
tap.equal((p.returncode, p.stdout), (0, b"recorded 2 (0 replayed), refused 0\n"), "a large output goes in a request of its own")
p = cli("record", "--server", SERVER, stdin=json.dumps(record(904, output="x" * (9 << 20))).encode() + b"\n")
tap.ok(p.returncode == 1 and b"--max-body" in p.stderr, "one over the limit is refused with the setting's name", p.returncode, p.stderr[:300])
for name in ("summary", "verdicts", "denials", "levels"):
    same(f"report {name}", "report", name)
    same(f"report {name} --json", "report", name, "--json")
same("report with filters", "report", "verdicts", "--backend", "bwrap", "--session", "tests", "--label", "k=v w", "--since", "2020-01-01", "--csv")
same("invocations", "invocations", "--limit", "7")
same("invocations --json", "invocations", "--limit", "7", "--json")
same("invocations show", "invocations", "show", "test-3")
p = cli("status", "--server", SERVER, "--json")
tap.ok(p.returncode == 0 and "service" in json.loads(p.stdout), "status --json", p.stderr)
p = cli("status", "--server", SERVER)
tap.ok(p.returncode == 0 and p.stdout.startswith(b"service at unix:"), "status for people", p.stdout, p.stderr)

# run
p = cli("run", "--server", SERVER, "--id", "run-1", "--session", "run", "--label", "a=b", "--keep-output", 4096, "--quiet", "--", "sh", "-c", "echo hello; exit 3")
j = s.get("/v1/invocations/run-1").json()
tap.equal((p.returncode, p.stdout, j.get("exit"), j.get("session"), j.get("labels", {}).get("a"), j.get("output"), j.get("command")), (3, b"hello\n", 3, "run", "b", "hello\n", ["sh", "-c", "echo hello; exit 3"]), "run records through the service")
tap.ok(j.get("labels", {}).get("peer.uid") == str(os.getuid()) and j.get("event") == "end" and j.get("started_at") and j.get("output_size") == 6, "begun before, ended after", j)
if cli("run", "--server", SERVER, "--id", "run-2", "--requested", "bwrap", "--quiet", "--", "bwrap", "--bind", "/", "/", "true").returncode == 0:
    there = s.get("/v1/invocations/run-2").json()
    cli("run", "--db", s.db, "--id", "run-3", "--requested", "bwrap", "--quiet", "--", "bwrap", "--bind", "/", "/", "true")
    here = s.get("/v1/invocations/run-3").json()
    keys = ("verdict", "requested", "lost", "downgrade", "unexplained", "effective_guarantees", "started", "backend", "enforcement")
    tap.equal({k: there.get(k) for k in keys}, {k: here.get(k) for k in keys}, "with the same level as in the file")
    tap.equal(there["basis"], "declared", "which the service was told, and says so")
p = cli("run", "--server", "unix:/nonexistent.sock", "--", "touch", os.path.join(s.dir, "ran"))
tap.ok(p.returncode == 125 and not os.path.exists(os.path.join(s.dir, "ran")), "what cannot be recorded is not started", p.returncode, p.stderr)

# TCP with the token file
token = os.path.join(s.dir, "state", "http-token")
a = cli("report", "--server", f"http://{s.host}", "--json", env={"SANDWITNESS_TOKEN_FILE": token})
tap.ok(a.returncode == 0 and json.loads(a.stdout)["report"] == "summary", "over TCP with the token file", a.stderr)
a = cli("report", "--server", f"http://{s.host}")
tap.ok(a.returncode == 1 and b"SANDWITNESS_TOKEN_FILE" in a.stderr, "without it: says what is missing", a.stderr)

# errors
for server, words in (("unix:/nonexistent.sock", b"sandwitness serve"), ("http://example.com:80", b"unix:PATH"), ("nonsense", b"unix:PATH"), ("unix:/" + "x" * 200, b"too long")):
    a = cli("report", "--server", server)
    tap.ok(a.returncode in (1, 2) and words in a.stderr, f"--server {server[:30]}: a clear error", a.returncode, a.stderr)
a = cli("report", "nonsense", "--server", SERVER)
tap.ok(a.returncode == 1 and b"summary" in a.stderr, "the service's problems are shown with their remedy", a.stderr)
a = cli("invocations", "show", "no/such?id", "--server", SERVER)
tap.ok(a.returncode == 1, "an id with odd characters", a.stderr)
s.stop()
tap.done()
