"""What the tests of whole programs without memory share: a folder of their own, TAP, and a run in which
allocations fail (no_memory.c)."""
import os
import subprocess
import sys
import tempfile

CLI = os.environ["SANDWITNESS"]
LIB = os.environ["SW_NO_MEMORY_LIB"]
POINTS = int(os.environ.get("SW_NO_MEMORY_POINTS", "40"))  # at how many places for each verb
count = failed = 0

os.chdir(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
os.environ.update(XDG_STATE_HOME=os.getcwd() + "/state", XDG_CONFIG_HOME=os.getcwd() + "/config", HOME=os.getcwd())
with open("now", "w"):  # from its first allocation on
    pass


def ok(good, name, detail=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    if not good:
        print("#   " + str(detail)[:1500].replace("\n", "\n#   "))
    sys.stdout.flush()


def done():
    print(f"1..{count}")
    sys.exit(1 if failed else 0)


def starved(args, after, times, changes, records=os.devnull):
    """Status, stdout without what `changes`, stderr; after so many allocations `times` of them fail, 0: all."""
    env = dict(os.environ, LD_PRELOAD=LIB, SW_NO_MEMORY=os.getcwd() + "/now", SW_NO_MEMORY_FORKS="1",
               SW_NO_MEMORY_AFTER=str(after))
    if times:
        env["SW_NO_MEMORY_TIMES"] = str(times)
    with open(records) as stdin:
        p = subprocess.run([CLI] + args, env=env, stdin=stdin, capture_output=True, timeout=60)
    return p.returncode, changes.sub(b"#", p.stdout), p.stderr
