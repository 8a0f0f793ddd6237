#!/usr/bin/env python3
"""Instructions per KiB of classification, counted by callgrind: what no neighbour disturbs.

    tests/bench/instructions.py [--update]      prints TAP; --update writes the new baseline

Fails where one of three inputs costs over 10 % more than tests/bench/instructions.json says. Counts
depend on the vectors the processor has, so each kind has its own baseline.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("SW_BUILD_DIR", os.path.join(ROOT, "build"))
BASELINE = os.path.join(ROOT, "tests/bench/instructions.json")
SIZE = 98304
GROWTH = 1.10
ROUNDS = 8  # patterns are compiled in the first only


def build_log():
    with open(os.path.join(ROOT, "corpus/neutral/make-lua-warnings.out"), "rb") as f:
        return f.read(SIZE)


def coloured_log():
    lines = build_log().split(b"\n")
    return b"\n".join(b"\033[1m\033[%dm%s\033[0m %s" % (31 + i % 6, line[:12], line[12:]) for i, line in enumerate(lines))[:SIZE]


def hostile():
    near = [b"  bwrap: setting up uid map: Permission denied", b"error: permission denied for table users",
            b"note: the read-only file system is mounted", b"log: bwrap: execvp nosuch: No such file or directory",
            b"remote: Permission denied (publickey)."]
    return b"\n".join(near[i * 7 % 5] + b" %d" % (i * 7919 % 1000003) for i in range(SIZE // 40))[:SIZE]


def count(data):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "input")
        with open(path, "wb") as f:
            f.write(data)
        program = os.path.join(BUILD, "tests/bench/bench-classify")
        p = subprocess.run(["valgrind", "--tool=callgrind", "--toggle-collect=sw_classify", "--callgrind-out-file=/dev/null",
                            program, "--size", repr(len(data) / 1048576), "--rounds", str(ROUNDS), "--only", "classify", "x=" + path],
                           capture_output=True, text=True)
        m = re.search(r"Collected : (\d+)", p.stderr)
        if not m or int(m.group(1)) < len(data) // 100:
            raise SystemExit("Bail out! callgrind counted nothing: " + p.stderr[-300:])
        return int(m.group(1)) * 1024 // len(data) // ROUNDS


def vectors():
    with open("/proc/cpuinfo") as f:
        return "avx2" if re.search(r"^flags.*\bavx2\b", f.read(), re.M) else "plain"


def main():
    inputs = {"build log": build_log(), "coloured log": coloured_log(), "hostile text": hostile()}
    kind = vectors()
    baseline = {}
    if os.path.exists(BASELINE):
        with open(BASELINE) as f:
            baseline = json.load(f)
    counts = {name: count(data) for name, data in inputs.items()}
    if "--update" in sys.argv:
        baseline[kind] = counts
        with open(BASELINE, "w") as f:
            json.dump(baseline, f, indent=1, sort_keys=True)
            f.write("\n")
        print(json.dumps(counts))
        return 0
    bad = 0
    for i, (name, n) in enumerate(counts.items(), 1):
        limit = baseline.get(kind, {}).get(name)
        ok = limit is None or n <= limit * GROWTH
        bad += not ok
        print("%sok %d - %s: %d instructions a KiB (%s)" % ("" if ok else "not ", i, name, n,
              "no baseline for %s" % kind if limit is None else "baseline %d" % limit))
    print("1..%d" % len(counts))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
