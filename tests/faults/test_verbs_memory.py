"""Memory fails once, or runs out, at one allocation after another in every verb that answers or writes.

With each of them the answer is the one that memory gives, or status 2 and an error that names
memory: never half an answer with status 0, a false "changed", or a crash.
SW_NO_MEMORY_POINTS: at how many places for each verb.
"""
import os
import re
import shutil
import subprocess

import starving
from starving import CLI, POINTS, done, ok

PACK = """schema: 1
backend: mine
title: Mine
runner: {names: [mine], prefixes: ['mine: ']}
denial: [{id: mine.no, literal: 'Read-only', regex: 'touch: (?:cannot )?touch .*Read-only',
  cause: write-outside-workspace, decides: yes,
  samples: ["touch: cannot touch '/etc/x': Read-only file system"], near_misses: ['x']}]
"""
RECORDS = (
    '{"backend":"bwrap","exit":1,"argv":["make","x"],"output":"bwrap: setting up uid map: Permission denied\\n","labels":{"k":"v"}}\n'
    '{"backend":"bwrap","exit":1,"output":"touch: cannot touch /etc/x: Read-only file system\\n"}\n') * 3

os.mkdir("packs")
for name, text in {"packs/mine.yaml": PACK, "records": RECORDS,
                   "out": "make\ntouch: cannot touch '/etc/x': Read-only file system\n"}.items():
    with open(name, "w") as f:
        f.write(text)
subprocess.run([CLI, "record", "--db", "t.db"], stdin=open("records"), check=True, capture_output=True)
subprocess.run([CLI, "export", "--db", "t.db", "--out", "x.ndjson"], check=True)

ONE = ["--exit", "1", "out"]
TRAIL = ["--db", "t.db"]
# The verbs that look at the host are in test_host_memory.py.
VERBS = [
    ("classify", ["classify", "--json", "--backend", "bwrap"] + ONE),
    ("classify for people", ["classify", "--verbose", "--backend", "bwrap"] + ONE),
    ("classify with a user's pack", ["classify", "--json", "--signatures", "packs", "--backend", "mine"] + ONE),
    ("classify --batch", ["classify", "--batch"]),
    ("explain", ["explain", "--backend", "bwrap"] + ONE),
    ("explain --json", ["explain", "--json", "--backend", "bwrap"] + ONE),
    ("explain-cause", ["explain-cause", "write-outside-workspace", "--json"]),
    ("signatures show", ["signatures", "show", "common.erofs.path", "--json"]),
    ("signatures check", ["signatures", "check", "packs"]),
    ("report", ["report"] + TRAIL),
    ("report --json", ["report", "--json"] + TRAIL),
    ("report levels", ["report", "levels", "--json"] + TRAIL),
    ("invocations", ["invocations", "--json"] + TRAIL),
    ("export", ["export"] + TRAIL),
    ("export --csv", ["export", "--csv"] + TRAIL),
    ("verify", ["verify"] + TRAIL),
    ("verify of an export", ["verify", "--json", "x.ndjson"]),
    ("reclassify", ["reclassify", "--json"] + TRAIL),
]
CHANGES = re.compile(rb"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+Z?")


def starved(args, after, times, records=None):
    return starving.starved(args, after, times, CHANGES, records or ("records" if "--batch" in args else os.devnull))


for name, args in VERBS:
    whole = starved(args, 1 << 40, 0)
    ok(whole[0] in (0, 3) and whole[1], f"{name}: with memory", whole)
    need = 1
    while need < 1 << 22 and starved(args, need, 0)[:2] != whole[:2]:
        need *= 2
    errors, bad = 0, []
    for times in (0, 1):
        for point in range(POINTS):
            after = need * point // POINTS
            status, out, err = starved(args, after, times)
            if (status, out) == whole[:2]:
                continue
            errors += 1
            batch = "--batch" in args and status == 1  # an error in the place of an answer
            if not (batch or status == 2) or b"memory" not in (out if batch else err):
                bad.append((after, times, status, out[:120], err[:200]))
            elif batch and out.count(b"\n") != whole[1].count(b"\n"):
                bad.append((after, times, "an answer is missing", out[-120:]))
    ok(not bad, f"{name}: whole or an error", "\n".join(map(repr, bad)))
    ok(errors, f"{name}: there were errors")

# What writes: whatever was told, the trail is as good as before, and a shorter way to it is in order.
WRITERS = [
    ("record with labels", ["record", "--db", "w.db"], "labelled"),
    ("record until a segment is full", ["record", "--db", "w.db"], "many"),
    ("seal", ["seal", "--db", "w.db"], None),
    ("seal --rotate-key", ["seal", "--rotate-key", "--db", "w.db"], None),
]
with open("labelled", "w") as f:
    f.write("".join(f'{{"id":"z{i}","backend":"bwrap","exit":0,"output":"","labels":{{"a":"{i}"}}}}\n' for i in range(3)))
with open("many", "w") as f:
    f.write("".join(f'{{"id":"m{i}","backend":"bwrap","exit":0,"output":"","session":"s{i % 7}"}}\n' for i in range(1100)))


def fresh():
    for f in os.listdir("."):
        if f.startswith("w.db"):
            os.remove(f)
    for f in os.listdir("."):
        if f.startswith("t.db"):
            shutil.copy2(f, "w" + f[1:])


for name, args, records in WRITERS:
    def write(after, times):
        fresh()
        return starved(args, after, times, records)
    whole = write(1 << 40, 0)
    ok(whole[0] == 0, f"{name}: with memory", whole)
    need = 1
    while need < 1 << 22 and write(need, 0)[0] != 0:
        need *= 2
    bad = []
    for times in (1, 0, 3):
        for point in range(POINTS):
            after = need * point // POINTS
            status, out, err = write(after, times)
            if status < 0 or b"GNU MP" in err:  # libgmp ends a program that has no memory
                if b"GNU MP" not in err:
                    bad.append((after, times, status, err[:200]))
            elif status and (status != 2 or b"memory" not in err + out):
                bad.append((after, times, status, out[:100], err[:200]))
            v = subprocess.run([CLI, "verify", "--db", "w.db"], capture_output=True)
            listed = subprocess.run([CLI, "invocations", "--json", "--db", "w.db"], capture_output=True)
            if v.returncode not in (0, 3) or listed.returncode:
                bad.append((after, times, status, v.returncode, v.stdout[:300], listed.stderr[:100]))
    ok(not bad, f"{name}: the trail stays intact", "\n".join(map(repr, bad)))
done()
