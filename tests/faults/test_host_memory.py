"""Memory fails once, or runs out, at one allocation after another in the verbs that look at the host.

The answer is the one that memory gives, or status 2 and an error that names memory; `run --sandbox`
runs the command in what it would choose with memory, and records that, or refuses with 125.
SW_NO_MEMORY_POINTS: at how many places for each verb.
"""
import json
import os
import re
import shutil
import subprocess

import starving
from starving import CLI, POINTS, done, ok

# Before that is getpwuid_r(3), which itself crashes in glibc at one allocation or two.
FIRST = 30
VERBS = [
    ("status", ["status", "--json", "--probe"]),
    ("status of bwrap for people", ["status", "--probe=bwrap"]),
    ("doctor", ["doctor", "--json"]),
    ("preflight", ["preflight", "--json"]),
    ("preflight of Landlock", ["preflight", "--json", "--backend", "landlock"]),
]
RUN = ["run", "--sandbox", "read_only", "--db", "run.db", "--verdict-file", "verdict", "--", "/bin/true"]
CHANGES = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+Z?|sandwitness-probe-\w+|"
                     rb"(?<=\"duration_ms\":)[0-9]+")
os.mkdir("path")  # the one runner that is quickly asked
if shutil.which("bwrap"):
    os.symlink(shutil.which("bwrap"), "path/bwrap")
os.environ["PATH"] = os.getcwd() + "/path"


def starved(args, after, times):
    return starving.starved(args, after, times, CHANGES)


for name, args in VERBS:
    whole = starved(args, 1 << 40, 0)
    ok(whole[0] in (0, 10, 11) and whole[1] + whole[2], f"{name}: with memory", whole)
    need = 1
    while need < 1 << 20 and starved(args, need, 0)[:2] != whole[:2]:
        need *= 2
    errors, bad = 0, []
    for times in (0, 1):
        for point in range(POINTS):
            after = FIRST + need * point // POINTS
            status, out, err = starved(args, after, times)
            if (status, out) == whole[:2]:
                continue
            errors += 1
            if status != 2 or b"memory" not in err:
                bad.append((after, times, status, out[:120], err[:200]))
    ok(not bad, f"{name}: whole or an error", "\n".join(map(repr, bad)))
    ok(errors, f"{name}: there were errors")


def level():
    with open("verdict") as f:
        o = json.load(f)
    return o["backend"], o["level"]["effective"], o["level"]["guarantees"], o["level"]["requested"]


if subprocess.run([CLI, "preflight"], capture_output=True).returncode == 0:
    status = starved(RUN, 1 << 40, 0)[0]
    whole, bad, refused = level(), [], 0
    ok(status == 0, "run --sandbox: with memory", status)
    for times in (0, 1):
        for point in range(POINTS * 3):
            after = FIRST + 900 * point // (POINTS * 3)
            if os.path.exists("verdict"):
                os.unlink("verdict")
            status, out, err = starved(RUN, after, times)
            refused += status == 125
            if os.path.exists("verdict") and level() != whole:
                bad.append((after, times, status, level(), err[-200:]))
            elif status not in (0, 125) or (status == 125 and b"memory" not in err):
                bad.append((after, times, status, err[-200:]))
    ok(not bad, "run --sandbox: the same level, or 125", "\n".join(map(repr, bad)))
    ok(refused, "run --sandbox: there were refusals")
    p = subprocess.run([CLI, "invocations", "--json", "--limit", "1000", "--db", "run.db"], capture_output=True)
    rows = {(o["backend"], o["effective"]) for o in map(json.loads, p.stdout.splitlines())}
    ok(rows == {whole[:2]}, "run --sandbox: no record says less", rows)
done()
