"""/metrics: the rules of Prometheus' own linter, written down here; and promtool where it is installed."""
import re
import shutil
import subprocess

from service import Service, Tap, record

tap = Tap()
service = Service()
service.post("/v1/classify", {"backend": "bwrap", "exit": 1, "output": "x"})
service.post("/v1/invocations", record(1, exit=1, output="bwrap: setting up uid map: Permission denied\n"))
service.get("/v1/status?probe=bwrap")
service.get("/nothing")
a = service.get("/metrics")
text = a.body.decode()
tap.equal(a.header("content-type"), "text/plain; version=0.0.4; charset=utf-8", "the content type")
tap.ok(text.endswith("\n"), "ends with a line end")

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"^({NAME})(?:\{{((?:[a-zA-Z_][a-zA-Z0-9_]*=\"[^\"\\\n]*\",?)*)\}})? (-?[0-9.e+-]+|NaN|[+-]Inf)$")
# closed lists: whatever clients send, no other label exists
LABELS = {"version", "route", "code", "le", "listener", "backend", "verdict", "reason", "result"}
families, samples, problems, current = {}, {}, [], None
for line in text.splitlines():
    m = re.match(rf"^# (HELP|TYPE) ({NAME}) (.+)$", line)
    if m:
        kind, name, rest = m.groups()
        if kind in families.setdefault(name, {}):
            problems.append(f"{name}: {kind} twice")
        families[name][kind] = rest
        current = name
        continue
    m = SAMPLE.match(line)
    if not m:
        problems.append(f"not a sample: {line[:80]}")
        continue
    name, labels, value = m.groups()
    family = name if name in families else re.sub(r"_(bucket|sum|count)$", "", name)
    if family != current:
        problems.append(f"{name}: stands apart from its family")
    if line.rsplit(" ", 1)[0] in samples:
        problems.append(f"twice: {line}")
    samples[line.rsplit(" ", 1)[0]] = float(value)
    for label in re.findall(r"(\w+)=\"", labels or ""):
        if label not in LABELS:
            problems.append(f"{name}: label {label} is not in the closed list")
for name, f in families.items():
    kind = f.get("TYPE")
    if set(f) != {"HELP", "TYPE"}:
        problems.append(f"{name}: needs HELP and TYPE")
    if not name.startswith("sandwitness_"):
        problems.append(f"{name}: prefix")
    if (kind == "counter") != name.endswith("_total"):
        problems.append(f"{name}: counters, and only they, end with _total")
    if kind not in ("counter", "gauge", "histogram"):
        problems.append(f"{name}: type {kind}")
    if re.search(r"_(milliseconds|ms|minutes|kilobytes|kb|mb|percent)(_|$)", name):
        problems.append(f"{name}: base units are seconds and bytes")
    if re.search(r"_(counter|gauge|histogram)(_|$)", name):
        problems.append(f"{name}: the type stands in the name")
    if re.search(r"[A-Z]", name):
        problems.append(f"{name}: upper case")
    if kind != "histogram" and re.search(r"_(bucket|sum|count)$", name):
        problems.append(f"{name}: suffix kept for histograms")
    if not f.get("HELP", "").endswith("."):
        problems.append(f"{name}: HELP is a sentence")
tap.ok(not problems, "lint", *problems)
tap.ok(len(families) > 20, "many families", len(families))

# histograms: cumulative, +Inf equals the count
for key, value in samples.items():
    m = re.match(r'(\w+)_bucket\{route="(\w+)",le="\+Inf"\}', key)
    if not m:
        continue
    name, route = m.groups()
    buckets = [v for k, v in samples.items() if k.startswith(f'{name}_bucket{{route="{route}",')]
    if buckets != sorted(buckets) or value != samples[f'{name}_count{{route="{route}"}}']:
        tap.ok(False, f"histogram of {route}", buckets)
tap.ok(samples['sandwitness_recorded_total{backend="bwrap",verdict="runner_failed"}'] == 1, "a record is counted")
tap.ok(samples['sandwitness_classified_total{backend="bwrap",verdict="ok"}'] == 1, "a classification is counted")
tap.ok(samples['sandwitness_trail_invocations{verdict="runner_failed"}'] == 1, "the trail's totals")
head = service.get("/v1/chain").json()
tap.equal(samples["sandwitness_trail_sequence"], head["seq"], "the chain's head: its number")
tap.equal(samples["sandwitness_trail_head"], float(int(head["hash"][:12], 16)), "and the first 48 bits of its hash")
tap.ok(samples["sandwitness_trail_up"] == 1 and samples["sandwitness_writer_up"] == 1, "healthy")

promtool = shutil.which("promtool")
if promtool:
    p = subprocess.run([promtool, "check", "metrics"], input=a.body, capture_output=True)
    tap.ok(p.returncode == 0 and not p.stdout + p.stderr, "promtool has nothing to say", p.stdout.decode(), p.stderr.decode())
else:
    tap.note("promtool is not installed: its rules above stand for it")
tap.equal(service.stop(), 0, "a clean end")
tap.done()
