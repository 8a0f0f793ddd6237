"""Memory fails once, or runs out, at one allocation after another of a service that is asked things.

Each answer is the one that memory gives, or a 500 or 503, or the connection is cut; the answer to an
array has a place for each record, and what is recorded over a unix socket says who recorded it.
SW_NO_MEMORY_POINTS: at how many places.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "http"))
from service import CLI, Cut, Service, Tap, record  # noqa: E402

# Before that is getpwuid_r(3) of what looks at the host, which itself crashes in glibc.
FIRST = 30
POINTS = int(os.environ.get("SW_NO_MEMORY_POINTS", "40"))
DENIED = "bwrap: setting up uid map: Permission denied\n"
tap = Tap()


def one(n, **more):
    return record(n, **{"exit": 1, "output": DENIED, **more})


def kind(e):
    return "receipt" if "seq" in e else e.get("status")


def array(j):
    return [kind(e) for e in j["results"]], j["recorded"], j["failed"]


def backend(j):
    return [(b["probe"]["result"], b["guarantees"]) for b in j["backends"] if b["id"] == "bwrap"], j["active"]


REQUESTS = [  # what is asked, and what of the answer does not change
    ("POST", "/v1/invocations", one(1), lambda a: (a.status, kind(a.json()))),
    ("POST", "/v1/invocations", [one(2), "no record", one(1, exit=2), one(3, backend="docker")], lambda a: (a.status, array(a.json()))),
    ("GET", "/metrics", None, lambda a: (a.status, sorted({line.split()[2] for line in a.body.decode().splitlines() if line[0] == "#"}))),
    ("GET", "/v1/status?probe=bwrap", None, lambda a: (a.status, backend(a.json()))),
]


def ask(after, times):
    """The answers, an error of the service being one without a text; what is wrong; the rows of the trail."""
    service = Service("--probe-timeout", "5s", tcp=False, env={"LD_PRELOAD": os.environ["SW_NO_MEMORY_LIB"], "SW_NO_MEMORY_FORKS": "1", "SW_NO_MEMORY_AFTER": str(after), **({"SW_NO_MEMORY_TIMES": str(times)} if times else {}), "SW_NO_MEMORY": os.path.join(NOW, "now")})
    answers, wrong = [], []
    with open(os.path.join(NOW, "now"), "w"):
        pass
    for method, path, body, short in REQUESTS:
        try:
            a = service.one(method, path, body, None)
            answers.append(short(a) if a.status < 500 else "error")
            if a.status == 501 and after < FIRST and "probe" in path:
                continue
            if a.status not in (500, 503) and a.status >= 500 or a.status == 500 and b"memory" not in a.body:
                wrong.append((path, a.status, a.body[:300]))
        except (Cut, ConnectionError):
            answers.append("error")
        except Exception as e:
            wrong.append((path, repr(e)))
            answers.append("error")
    os.unlink(os.path.join(NOW, "now"))
    service.process.kill()
    p = subprocess.run([CLI, "invocations", "--json", "--limit", "100", "--db", service.db], capture_output=True)
    rows = [json.loads(line) for line in p.stdout.splitlines()]
    service.cleanup()
    return answers, wrong, rows


own = Service(tcp=False)
NOW = own.dir
own.stop()
whole, wrong, rows = ask(1 << 40, 0)
tap.ok(not wrong and "error" not in whole and len(rows) == 3, "with memory", whole, wrong, rows)
need = 64
while need < 1 << 20 and ask(need, 0)[0] != whole:
    need *= 2
for times in (0, 1):
    bad, errors = [], 0
    for after in sorted({*range(10), *(need * point // POINTS for point in range(POINTS))}):
        answers, wrong, rows = ask(after, times)
        errors += "error" in answers
        bad += [(after, times, w) for w in wrong]
        for got, wanted in zip(answers, whole):
            if got not in ("error", wanted):
                # a place in an array may hold an error of the service
                if got[0] == 200 and isinstance(got[1][0], list) and len(got[1][0]) == 4 and \
                        all(g in (w, 500, 503, "receipt") for g, w in zip(got[1][0], wanted[1][0])):
                    continue
                bad.append((after, times, got))
        bad += [(after, times, r["id"], r["labels"]) for r in rows if not {"peer.uid", "peer.pid"} <= set(r["labels"] or {})]
        bad += [(after, times, r["id"], r["verdict"]) for r in rows if r["id"] == "test-2" and r["verdict"] != "runner_failed"]
    tap.ok(not bad, f"{'one fails' if times else 'none left'}: whole or an error", "\n".join(map(repr, bad)))
    tap.ok(errors, "there were errors")
tap.done()
