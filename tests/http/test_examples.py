"""The examples of docs/http.md and docs/operations.md, run as they stand.

A line "    $ COMMAND" (continued by "\\") is run by bash in one session; lines below it, up to an empty
line or the next command, are its output, in which "..." stands for anything."""
import os
import re
import subprocess

from service import BUILD, ROOT, Service, Tap

tap = Tap()
service = Service("--allow-host", "audit.example", listen=[], wait=False)
service.wait_ready(1)
with_tcp = Service(listen=["127.0.0.1:0"])
work = os.path.join(service.dir, "work")
os.makedirs(work)
env = dict(service.env, PATH=BUILD + ":" + os.environ["PATH"], SANDWITNESS_DB=service.db, PORT=str(with_tcp.port),
           TOKEN_FILE=os.path.join(with_tcp.dir, "state", "http-token"), HOME=work, SW_SOURCE_DIR=ROOT)


def examples(path):
    with open(path) as f:
        lines = f.read().split("\n")
    i = 0
    while i < len(lines):
        m = re.match(r"    \$ (.*)", lines[i])
        i += 1
        if not m:
            continue
        command, number, wanted = m.group(1), i, []
        while command.endswith("\\") and i < len(lines):
            command += "\n" + lines[i][4:]
            i += 1
        while i < len(lines) and lines[i].startswith("    ") and not lines[i].startswith("    $ "):
            wanted.append(lines[i][4:])
            i += 1
        yield number, command, "\n".join(wanted)


for name in ("http.md", "operations.md"):
    n = 0
    for number, command, wanted in examples(os.path.join(ROOT, "docs", name)):
        n += 1
        p = subprocess.run(["bash", "-uo", "pipefail", "-c", command], capture_output=True, text=True, env=env, cwd=work, timeout=60)
        good = p.returncode == 0
        if wanted:
            pattern = ".*".join(re.escape(part.strip()) for part in wanted.split("..."))
            good = good and re.search("^\\s*" + pattern + "\\s*$", p.stdout.strip(), re.S) is not None
        tap.ok(good, f"{name}:{number}: {command.splitlines()[0][:90]}", f"exit {p.returncode}", p.stdout[-600:], p.stderr[-400:], "wanted: " + wanted)
    tap.ok(n > 2, f"{name} has examples", n)
with open(os.path.join(ROOT, "docs", "http.md")) as f:
    text = f.read()
with open(os.path.join(ROOT, "http", "problem.h")) as f:
    slugs = re.findall(r'X\(\w+, "([a-z-]+)"', f.read())
tap.ok(len(slugs) > 15 and not [s for s in slugs if f"`{s}`" not in text], "every problem is documented", [s for s in slugs if f"`{s}`" not in text])
with open(os.path.join(ROOT, "http", "config.c")) as f:
    options = re.findall(r'^    \{"([a-z-]+)", ?OPT_|^    \{"([a-z-]+)",\s*OPT_', f.read(), re.M)
options = [a or b for a, b in options]
tap.ok(len(options) > 20 and not [o for o in options if f"`--{o}`" not in text], "every option is documented", len(options), [o for o in options if f"`--{o}`" not in text])
service.stop()
with_tcp.stop()
tap.done()
