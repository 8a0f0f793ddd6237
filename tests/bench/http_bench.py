#!/usr/bin/env python3
"""The service under load, beside what bounds it. Needs wrk. Loopback only.

    tests/bench/http_bench.py [--seconds N] [--json]

Bars: with 16 clients at least five times the durable records of one client; small GETs at least half
of a bare libmicrohttpd answer; POST /v1/classify of 10 KiB bounded by HTTP, not by classification.
Each pair is measured in turns in one run, and the median of the turns is compared.
"""
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "http"))
from service import BUILD, Service  # noqa: E402

SECONDS = int(sys.argv[sys.argv.index("--seconds") + 1]) if "--seconds" in sys.argv else 3
TURNS = 3
LINE = "cc -O2 -c src/module_%d.c -o build/module_%d.o -Iinclude -Wall\n"


def wrk(url, clients, token=None, body=None, kind=None):
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as f:
        f.write('wrk.method = "%s"\n' % ("POST" if body else "GET"))
        if body:
            f.write("wrk.body = [==[%s]==]\n" % body)
            f.write('wrk.headers["Content-Type"] = "%s"\n' % kind)
        if token:
            f.write('wrk.headers["Authorization"] = "Bearer %s"\n' % token)
        f.write("function done(s, l, r) io.write(string.format('RESULT %d %d %d %d\\n', s.requests, s.duration, s.errors.status, l:percentile(99))) end\n")
        f.flush()
        out = subprocess.run(["wrk", "-t", "1", "-c", str(clients), "-d", f"{SECONDS}s", "-s", f.name, "--timeout", "10s", url], capture_output=True, text=True, check=True).stdout
    n, us, errors, p99 = map(int, re.search(r"RESULT (\d+) (\d+) (\d+) (\d+)", out).groups())
    if errors:
        raise SystemExit(f"{url}: {errors} answers were errors")
    return n / us * 1e6, p99 / 1000


class Bare:
    def __init__(self, threads):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        program = os.path.join(BUILD, "tests", "bench", "bench-http-bare")
        self.process = subprocess.Popen([os.environ.get("BENCH_HTTP_BARE", program), str(self.port), str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()
        self.url = f"http://127.0.0.1:{self.port}/livez"

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def turns(jobs):
    """{name: (url, clients, token, body, kind)} -> {name: (median per second, median p99 in ms)}"""
    got = {name: [] for name in jobs}
    for _ in range(TURNS):
        for name, job in jobs.items():
            got[name].append(wrk(*job))
    return {name: (statistics.median(r for r, _ in v), statistics.median(p for _, p in v)) for name, v in got.items()}


service = Service("--quiet")
bare = Bare(1)
epoll = Bare(0)
base, token = f"http://{service.host}", service.token
small = json.dumps({"backend": "bwrap", "exit": 0, "command": ["make", "test"], "session": "bench", "requested": "bwrap", "effective": "bwrap", "output": "ok\n"})
output = "".join(LINE % (i, i) for i in range(170))[:10240]
one = service.post("/v1/invocations", json.loads(small)).json()["id"]
results = turns({
    "bare libmicrohttpd, thread per connection": (bare.url, 16),
    "bare libmicrohttpd, epoll": (epoll.url, 16),
    "GET /livez": (base + "/livez", 16),
    "GET /v1/chain": (base + "/v1/chain", 16, token),
    "GET /v1/invocations/{id}": (f"{base}/v1/invocations/{one}", 16, token),
    "GET /v1/status": (base + "/v1/status", 16, token),
    "POST /v1/classify, 10 KiB": (base + "/v1/classify?backend=bwrap&exit=1", 16, token, output, "application/octet-stream"),
    "POST /v1/classify, 10 bytes": (base + "/v1/classify?backend=bwrap&exit=1", 16, token, output[:10], "application/octet-stream"),
    "POST /v1/invocations, 1 client": (base + "/v1/invocations", 1, token, small, "application/json"),
    "POST /v1/invocations, 16 clients": (base + "/v1/invocations", 16, token, small, "application/json"),
})
metrics = service.get("/metrics").body.decode()
groups = int(re.search(r"^sandwitness_record_groups_total (\d+)", metrics, re.M).group(1))
operations = int(re.search(r"^sandwitness_record_operations_total (\d+)", metrics, re.M).group(1))
service.stop()
bare.stop()
epoll.stop()
best = max(results["bare libmicrohttpd, thread per connection"][0], results["bare libmicrohttpd, epoll"][0])
bars = [
    ("records, 16 clients / 1 client", results["POST /v1/invocations, 16 clients"][0] / results["POST /v1/invocations, 1 client"][0], 5),
    ("GET /livez / bare answer", results["GET /livez"][0] / best, 0.5),
    ("GET /v1/chain / bare answer", results["GET /v1/chain"][0] / best, 0.5),
]
if "--json" in sys.argv:
    print(json.dumps({"results": {k: {"per_second": round(r), "p99_ms": p} for k, (r, p) in results.items()}, "bars": [{"name": n, "value": round(v, 2), "bar": b} for n, v, b in bars]}))
else:
    for name, (rate, p99) in results.items():
        print(f"{name:44} {rate:10.0f}/s   p99 {p99:7.2f} ms")
    print(f"records per commit: {operations / groups:.1f}")
    for name, value, bar in bars:
        print(f"{'met   ' if value >= bar else 'MISSED'} {name}: {value:.2f} (bar {bar})")
sys.exit(0 if all(v >= b for _, v, b in bars) else 10)
