#!/usr/bin/env python3
"""Scores verdicts against labelled outputs.

usage: score.py [options] CASES.jsonl [VERDICTS.ndjson]

CASES.jsonl holds one labelled output per line (id, backend, exit, output or output_b64, network,
mode, expect, truth, and where known line, stage, cause, denied_resource, undecidable,
hidden_denial). VERDICTS.ndjson is what `sandwitness classify --batch` printed for them; without it
the program is run (--program, default build/sandwitness).

  --program P     the sandwitness to run
  --backend B     only this backend (repeatable)
  --wrong [KIND]  list what is wrong: verdict, line, stage, cause, resource, or all (default)
  --undecidable   count rows marked undecidable too
  --notes FILE    label corrections (default tests/data/label-notes.tsv; --notes none: raw labels)
  --causes FILE   the collector's cause words and our slugs (default tests/data/cause-map.tsv)
  --json          the figures as one JSON object
  --bars NAME     bwrap, containers or all: judge by the acceptance bars; status 10 where one is missed

How a row is judged. verdict: expect. line: equal bytes. stage: `exec` where the label says so,
anything but `exec` where it does not. cause: one of the slugs that the map gives for the words.
resource: exact; a file below the labelled folder and a host without its port count as right too;
rows whose output does not contain the labelled words are left out (nothing could read them there).
"""
import argparse
import base64
import collections
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "tests", "data")
ERRNO_WORDS = (b"Read-only file system", b"Operation not permitted", b"Permission denied",
               b"Network is unreachable", b"EROFS", b"EPERM", b"EACCES", b"ENETUNREACH")


def table(path):
    rows = []
    if path != "none" and os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for text in f:
                text = text.rstrip("\n")
                if text and not text.startswith("#"):
                    rows.append(text.split("\t"))
    return rows


def load_cases(path, notes, backends):
    cases = []
    with open(path, encoding="utf-8") as f:
        for text in f:
            if text.strip():
                row = json.loads(text)
                if not backends or row["backend"] in backends:
                    cases.append(row)
    by_id = {row["id"]: row for row in cases}
    for note in table(notes):
        if len(note) < 3 or note[0] not in by_id:
            continue
        row, field, value = by_id[note[0]], note[1], note[2]
        field = {"verdict": "expect", "resource": "denied_resource"}.get(field, field)
        if field == "undecidable":
            row[field] = value not in ("no", "false", "0", "")
        elif value in ("", "-"):
            row.pop(field, None)
        else:
            row[field] = value
    return cases


def output_of(row):
    if row.get("output_b64"):
        return base64.b64decode(row["output_b64"])
    return (row.get("output") or "").encode("utf-8", "surrogatepass")


def run_batch(program, cases):
    keys = ("id", "backend", "exit", "output", "output_b64", "network", "mode")
    feed = "".join(json.dumps({k: r[k] for k in keys if r.get(k) is not None}) + "\n" for r in cases)
    done = subprocess.run([program, "classify", "--batch"], input=feed.encode(), stdout=subprocess.PIPE,
                          check=False)
    return done.stdout.decode("utf-8", "replace").splitlines()


def line_of(v):
    if v.get("line_b64"):
        return base64.b64decode(v["line_b64"])
    return v["line"].encode("utf-8", "surrogatepass") if v.get("line") is not None else None


def resource_of(v):
    r = v.get("resource")
    if isinstance(r, dict):
        r = r.get("value") or r.get("path") or r.get("host") or r.get("syscall")
    return r or ""


def resource_right(want, got):
    if not got:
        return False
    if got == want:
        return True
    if want.startswith("/"):
        return got.startswith(want.rstrip("/") + "/") or want.endswith("/" + got.lstrip("./"))
    host = want.rsplit(":", 1)[0]
    return got in (host, want.split(":")[-1]) or got.rsplit(":", 1)[0] == host


def resource_visible(want, output):
    words = [want.encode()]
    if not want.startswith("/"):
        words.append(want.rsplit(":", 1)[0].encode())
    return any(w in output for w in words)


def cause_map(path):
    result = collections.defaultdict(set)
    for cells in table(path):
        if len(cells) >= 2:
            backend = cells[2] if len(cells) > 2 else ""
            result[(cells[0].strip(), backend.strip())].update(cells[1].replace(",", " ").split())
    return result


def score(cases, verdicts, causes, with_undecidable):
    figures = collections.defaultdict(lambda: [0, 0])
    wrong = []
    matrix = collections.Counter()
    unmapped = set()

    def count(name, right, row, detail=""):
        for key in (name, name + "@" + row["backend"]):
            figures[key][0] += 1 if right else 0
            figures[key][1] += 1
        if not right:
            wrong.append((name, row["id"], detail))

    for row in cases:
        v = verdicts.get(row["id"])
        if row.get("undecidable") and not with_undecidable:
            continue
        if v is None or "error" in v and "verdict" not in v:
            count("verdict", False, row, "no verdict: %s" % (v or {}).get("error", "missing"))
            continue
        got, want = v["verdict"], row["expect"]
        output = output_of(row)
        matrix[(row["backend"], want, got)] += 1
        count("verdict", got == want, row, "%s, wanted %s: %s" % (got, want, output[:160]))
        if want == "runner_failed":
            count("runner failures", got == want, row)
            if row.get("line") is not None:
                line = row["line"].encode("utf-8", "surrogatepass").rstrip(b"\r\n")
                count("line", got == want and line_of(v) == line, row,
                      "%s, wanted %s" % (line_of(v), line))
                count("failure with exact line", got == want and line_of(v) == line, row)
            if got == want:
                count("stage", (v.get("stage") == "exec") == (row.get("stage") == "exec"), row,
                      "%s, wanted %s" % (v.get("stage"), row.get("stage") or "not exec"))
        else:
            count("no false runner failure", got != "runner_failed", row)
        if want == "sandbox_denied":
            count("denials", got == want, row)
            if row.get("wording") == "errno" or any(w in output for w in ERRNO_WORDS):
                count("denials with an errno", got == want, row)
        if row.get("truth") == "command_failed":
            count("no false denial", got != "sandbox_denied", row)
        if row.get("cause") and got == want and want == "runner_failed":
            slugs = causes.get((row["cause"], row["backend"])) or causes.get((row["cause"], ""))
            if slugs:
                count("cause", v.get("cause") in slugs, row,
                      "%s, wanted %s (%s)" % (v.get("cause"), "/".join(sorted(slugs)), row["cause"]))
            elif slugs is None:
                unmapped.add(row["cause"])
        if row.get("denied_resource") and want == "sandbox_denied" and got == want:
            if resource_visible(row["denied_resource"], output):
                right = resource_right(row["denied_resource"], resource_of(v))
                detail = "%r, wanted %r: %s" % (resource_of(v), row["denied_resource"], line_of(v))
                count("resource", right, row, detail)
                if row.get("wording") == "errno":
                    count("resource, errno rows", right, row)
    return figures, wrong, matrix, unmapped


BARS = {
    "bwrap": {"failure with exact line": 98, "no false runner failure": 100, "denials with an errno": 97,
              "no false denial": 97, "resource, errno rows": 90},
    "containers": {"verdict": 97, "line": 97, "stage": 95, "cause": 90},
    "all": {"verdict": 98, "line": 98, "stage": 97, "cause": 90, "resource": 95, "denials": 96,
            "no false denial": 97, "no false runner failure": 100},
}
ORDER = ("verdict", "runner failures", "line", "failure with exact line", "stage", "cause", "denials",
         "denials with an errno", "resource", "resource, errno rows", "no false runner failure",
         "no false denial")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases")
    p.add_argument("verdicts", nargs="?")
    p.add_argument("--program", default=os.environ.get("SANDWITNESS", os.path.join(ROOT, "build", "sandwitness")))
    p.add_argument("--backend", action="append", default=[])
    p.add_argument("--wrong", nargs="?", const="all")
    p.add_argument("--undecidable", action="store_true")
    p.add_argument("--notes", default=os.path.join(DATA, "label-notes.tsv"))
    p.add_argument("--causes", default=os.path.join(DATA, "cause-map.tsv"))
    p.add_argument("--json", action="store_true")
    p.add_argument("--bars", choices=sorted(BARS))
    o = p.parse_args()
    cases = load_cases(o.cases, o.notes, set(o.backend))
    if o.verdicts:
        with (sys.stdin if o.verdicts == "-" else open(o.verdicts, encoding="utf-8", errors="replace")) as f:
            lines = f.read().splitlines()
    else:
        lines = run_batch(o.program, cases)
    verdicts = {}
    for text in lines:
        if text.strip():
            v = json.loads(text)
            verdicts[v.get("id")] = v
    figures, wrong, matrix, unmapped = score(cases, verdicts, cause_map(o.causes), o.undecidable)
    if o.json:
        print(json.dumps({"figures": {k: {"right": r, "of": n} for k, (r, n) in sorted(figures.items())},
                          "wrong": [{"kind": k, "id": i, "detail": d} for k, i, d in wrong]}))
    else:
        report(figures, matrix, unmapped)
        if o.wrong:
            for kind, name, detail in wrong:
                if o.wrong in ("all", kind) and (detail or o.wrong == kind):
                    print("%-10s %s\n           %s" % (kind, name, detail))
    return judge(figures, o.bars, o.json) if o.bars else 0


def percent(pair):
    return "%6.1f %%" % (100.0 * pair[0] / pair[1]) if pair[1] else "     - "


def report(figures, matrix, unmapped):
    print("%-26s %6s %6s" % ("", "right", "of"))
    for name in ORDER:
        if name in figures:
            print("%-26s %6d %6d %s" % (name, *figures[name], percent(figures[name])))
    print("\n%-24s %14s  %14s  %14s   confusion (wanted -> got)" % ("backend", "verdict", "line", "cause"))
    for key in sorted(k for k in figures if k.startswith("verdict@")):
        b = key.split("@")[1]
        cells = []
        for name in ("verdict", "line", "cause"):
            pair = figures.get(name + "@" + b, [0, 0])
            cells.append("%4d/%-4d%s" % (*pair, percent(pair)[:-2].rjust(6)))
        errors = ", ".join("%s -> %s: %d" % (w, g, n) for (mb, w, g), n in sorted(matrix.items())
                           if mb == b and w != g)
        print("%-24s %14s  %14s  %14s   %s" % (b, *cells, errors))
    if unmapped:
        print("\n%d cause words have no slug in the map: %s" % (len(unmapped), "; ".join(sorted(unmapped)[:8])))


def judge(figures, bars, quiet):
    missed = []
    for name, bar in BARS[bars].items():
        right, of = figures.get(name, (0, 0))
        if of and 100.0 * right < bar * of:
            missed.append("%s %.1f %% (bar %d %%)" % (name, 100.0 * right / of, bar))
    if bars == "all":
        for key, (right, of) in figures.items():
            if key.startswith("verdict@") and of >= 20 and 100.0 * right < 96 * of:
                missed.append("%s %.1f %% (bar 96 %%)" % (key, 100.0 * right / of))
    if not quiet:
        print("\nbars (%s): %s" % (bars, "; ".join(missed) if missed else "all met"))
    return 10 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
