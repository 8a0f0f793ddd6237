"""Every live answer against /openapi.json; reads, writes, paging, ETags."""
import json
import os
import re
from datetime import datetime

from schema import check_answer
from service import ROOT, Service, Tap, record

tap = Tap()
service = Service()
document = service.get("/openapi.json").json()
seen = set()
with open(os.path.join(ROOT, "http", "openapi.json")) as f:
    tap.ok(document == json.load(f), "the served description is the one in the source")


def ask(method, path, template=None, body=None, headers=None, status=None, **more):
    """Sends, checks the answer against the description, returns it."""
    template = template or path.split("?")[0]
    a = service.one(method, path, body, headers, **more)
    parsed = json.loads(a.body) if a.body and "json" in (a.header("content-type") or "") else None
    wrong = check_answer(document, method, template, a.status, a.header("content-type"), parsed)
    tap.ok(not wrong, f"{method} {path} {a.status}: as described", *wrong[:8])
    if status is not None:
        tap.ok(a.status == status, f"{method} {path}: {status}", a.status, a.body[:300])
    seen.add((method.lower(), template, str(a.status)))
    for name, value in (("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer")):
        if a.header(name) != value:
            tap.ok(False, f"{method} {path}: header {name}", a.headers)
    if "cache-control" not in a.headers or "content-security-policy" not in a.headers:
        tap.ok(False, f"{method} {path}: cache and content policy", a.headers)
    return a


# ---- nothing recorded yet ----
for path in ("/v1/status", "/v1/invocations", "/v1/reports", "/v1/chain", "/v1/signatures", "/metrics", "/livez", "/readyz", "/openapi.json", "/"):
    ask("GET", path, status=200)
for name in [r["name"] for r in service.get("/v1/reports").json()["reports"]]:
    ask("GET", f"/v1/reports/{name}", "/v1/reports/{name}", status=200)
tap.equal(service.get("/v1/invocations").json()["invocations"], [], "an empty trail gives an empty list")

# ---- classify ----
BWRAP = b"bwrap: setting up uid map: Permission denied\n"
a = ask("POST", "/v1/classify?backend=bwrap&exit=1&id=x", "/v1/classify", BWRAP, content_type="application/octet-stream", status=200)
j = a.json()
tap.equal((j["verdict"], j["line"], j["cause"], j["id"]), ("runner_failed", BWRAP.decode().strip(), "userns-uid-map-denied", "x"), "raw bytes: the verdict, its line and cause")
tap.ok(j["advice"] and j["advice"]["remedies"], "and its advice")
b = ask("POST", "/v1/classify", body={"id": "x", "backend": "bwrap", "exit": 1, "output": BWRAP.decode()}, status=200)
tap.equal(b.json(), j, "JSON gives the same")
ask("POST", "/v1/classify", body={"backend": "bwrap", "exit": 1, "output_b64": "YndyYXA6IHNldHRpbmcgdXAgdWlkIG1hcDog/w=="}, status=200)
tap.equal(ask("POST", "/v1/classify", body={"backend": "bwrap", "exit": 0, "output": BWRAP.decode()}).json()["verdict"], "ok", "exit 0 is ok")
tap.equal(ask("POST", "/v1/classify", body={"backend": "bwrap", "exit": 1, "started": "yes", "output": BWRAP.decode()}).json()["verdict"], "ok", "started = yes: the line is the command's")
tap.equal(ask("POST", "/v1/classify", body={"backend": "bwrap", "signal": "SIGSYS", "output": ""}).json()["evidence"], "exit_code", "a signal by name")
a = ask("POST", "/v1/classify", body={"backend": "bwrap", "exit": 1, "output": "touch: cannot touch '/etc/x': Read-only file system\n", "mode": "workspace_write", "network": "denied", "writable_roots": ["/srv/ws"], "cwd": "/srv/ws", "expect": "rides along"})
tap.equal((a.json()["verdict"], a.json()["resource"], a.json()["operation"]), ("sandbox_denied", "/etc/x", "write"), "facts are taken")
hostile = ask("POST", "/v1/classify?backend=bwrap&exit=1", "/v1/classify", b"touch: cannot touch '/etc/\xff\x00\x1b[31m': Read-only file system\n", content_type="application/octet-stream", status=200).json()
tap.ok(hostile["verdict"] == "sandbox_denied" and hostile.get("line_b64"), "bytes that are not UTF-8 come back exactly", hostile)
for bad in ({"backend": "bwrap"}, {"exit": 1}, {"backend": "nonsense", "exit": 1}, {"backend": "bwrap", "exit": 2 ** 40}, {"backend": "bwrap", "exit": 1, "signal": 9}, {"backend": "bwrap", "exit": "1"}, {"backend": "bwrap", "exit": 1, "mode": "wild"},
            {"backend": "bwrap", "exit": 1, "output": 5}, {"backend": "bwrap", "exit": 1, "output": "", "output_b64": ""}, {"backend": "bwrap", "exit": 1, "output_b64": "", "output": ""}, {"backend": "bwrap", "exit": 1, "writable_roots": ["relative"]}, {"backend": "bwrap", "exit": 1, "output_b64": "!"}, [1], "x", None):
    a = ask("POST", "/v1/classify", body=json.dumps(bad).encode(), status=400)
    tap.equal(a.problem, "bad-body", f"classify {json.dumps(bad)[:60]}: names what is wrong")
for query in ("backend=bwrap", "exit=1", "backend=bwrap&exit=x", "backend=bwrap&exit=1&color=red", "backend=bwrap&exit="):
    ask("POST", "/v1/classify?" + query, "/v1/classify", b"", content_type="application/octet-stream", status=400)
ask("POST", "/v1/classify?exit=1", "/v1/classify", {"backend": "bwrap"}, status=400)

# ---- writes: durable, idempotent, each for itself ----
one = record(1, command=["make", "test"], output="touch: cannot touch '/etc/x': Read-only file system\n", exit=1, keep_output=4096, actor="agent", labels={"team": "a"})
a = ask("POST", "/v1/invocations", body=one, status=201)
first = a.json()
tap.equal(a.header("location"), "/v1/invocations/test-1", "Location names the record")
a = ask("POST", "/v1/invocations", body=one, status=200)
tap.equal((a.json()["replay"], a.json()["seq"]), (True, first["seq"]), "the same again is a replay with the same answer")
pid = os.fork()
if pid == 0:
    try:
        os._exit(0 if service.post("/v1/invocations", one).json().get("replay") is True else 1)
    except BaseException:
        os._exit(2)
tap.equal(os.waitpid(pid, 0)[1], 0, "from another process too")
tap.equal(ask("POST", "/v1/invocations", body={**one, "exit": 2}, status=409).problem, "id-conflict", "another content under the same id is a conflict")
a = ask("POST", "/v1/invocations", body=record(2, id=None), status=201)
tap.ok(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", a.json()["id"]), "an id is made where none is given", a.json())
a = ask("POST", "/v1/invocations", body=[record(3), {"backend": 5}, record(4), {**one, "exit": 3}, "x", record(4)], status=200)
j = a.json()
tap.equal([(r.get("id"), r.get("status")) for r in j["results"]], [("test-3", None), (None, 400), ("test-4", None), (None, 409), (None, 400), ("test-4", None)], "an array: each element for itself, in order")
tap.equal((j["recorded"], j["failed"], j["results"][5]["replay"]), (3, 3, True), "and counted")
for bad in ({}, {"backend": "bwrap", "color": 1}, {"backend": "bwrap", "labels": []}, {"backend": "bwrap", "labels": {"peer.uid": "0"}}, [], {"backend": "bwrap", "id": "x" * 200}):
    ask("POST", "/v1/invocations", body=bad, status=400)
ask("POST", "/v1/invocations?limit=5", "/v1/invocations", record(9), status=400)
ask("POST", "/v1/invocations", body=[record(i) for i in range(129)], status=400)
a = ask("POST", "/v1/invocations", body=record(5), headers=service.bearer, tcp=True, host=service.host, status=201)
a = ask("POST", "/v1/invocations", body=record(6, id="odd id/ü\r\nX: y"))
if a.status == 201:
    tap.equal(a.header("location"), "/v1/invocations/odd%20id%2F%C3%BC%0D%0AX%3A%20y", "an odd id is escaped in Location")
    tap.equal(ask("GET", a.header("location"), "/v1/invocations/{id}").json()["id"], "odd id/ü\r\nX: y", "and found there")
tap.ok("x" not in a.headers, "and no header of its own")
# begin and end
a = ask("POST", "/v1/invocations", body={"id": "two-parts", "event": "begin", "backend": "bwrap", "command": ["sleep", "1"]}, status=201)
tap.equal(ask("GET", "/v1/reports/unfinished", "/v1/reports/{name}").json()["rows"][0]["id"], "two-parts", "a begin is visible as unfinished")
ask("POST", "/v1/invocations", body={"id": "two-parts", "event": "end", "backend": "bwrap", "exit": 0, "output": ""}, status=201)
tap.equal(ask("GET", "/v1/reports/unfinished", "/v1/reports/{name}").json()["rows"], [], "and finished by its end")
tap.equal(ask("POST", "/v1/invocations", body={"id": "never-begun", "event": "end", "backend": "bwrap", "exit": 0}, status=404).status, 404, "an end without a begin is refused")

# ---- reads ----
a = ask("GET", "/v1/invocations/test-1?explain=1", "/v1/invocations/{id}", status=200)
j = a.json()
tap.equal((j["verdict"], j["labels"].get("team"), j["labels"].get("peer.uid"), j["labels"].get("peer.pid")), ("sandbox_denied", "a", str(os.getuid()), str(os.getpid())), "a record says which process wrote it")
tap.ok(j["explanation"] and any(r["applied"] for r in j["explanation"]["rules"]), "explain=1 gives the decision path", j.get("explanation"))
tap.ok("peer.uid" not in ask("GET", "/v1/invocations/test-5", "/v1/invocations/{id}").json()["labels"], "over TCP nobody's credentials are known, and none are claimed")
ask("GET", "/v1/invocations/test-2?explain=0", "/v1/invocations/{id}", status=404)
ask("GET", "/v1/invocations/no%2Fsuch%20%ff%1b", "/v1/invocations/{id}", status=404)
tap.equal(ask("GET", "/v1/reports/nonsense", "/v1/reports/{name}", status=404).problem, "no-such-report", "an unknown report names the known ones")
for query in ("limit=0", "limit=1001", "limit=x", "since=someday", "verdict=maybe", "cursor=nonsense", "label=x", "color=red"):
    ask("GET", "/v1/invocations?" + query, "/v1/invocations", status=400)
for name in [r["name"] for r in service.get("/v1/reports").json()["reports"]]:
    ask("GET", f"/v1/reports/{name}?since=24h&backend=bwrap&session=tests", "/v1/reports/{name}", status=200)
tap.equal(len(ask("GET", "/v1/invocations?label=team=a&verdict=sandbox_denied&actor=agent&since=1h", "/v1/invocations").json()["invocations"]), 1, "filters add up")
ask("GET", "/v1/causes/userns-uid-map-denied", "/v1/causes/{slug}", status=200)
ask("GET", "/v1/causes/nonsense", "/v1/causes/{slug}", status=404)
ask("GET", "/v1/signatures?backend=bwrap", "/v1/signatures", status=200)
ask("GET", "/v1/signatures?backend=nonsense", "/v1/signatures", status=400)
ask("GET", "/v1/status?probe=nonsense", "/v1/status", status=400)
j = ask("GET", "/v1/status?probe=bwrap", "/v1/status", status=200).json()
bwrap = [b for b in j["backends"] if b["id"] == "bwrap"][0]
tap.ok(bwrap["probe"]["result"] != "not_probed" and bwrap["last_probe"]["at"] == bwrap["probe"]["at"], "a probe on request", bwrap)
if bwrap["probe"]["context"]:
    tap.equal(bwrap["probe"]["context"]["uid"], os.getuid(), "carries the context in which it holds")
j = ask("GET", "/v1/status", status=200).json()
bwrap = [b for b in j["backends"] if b["id"] == "bwrap"][0]
tap.ok(bwrap["probe"]["result"] == "not_probed" and bwrap["last_probe"]["at"], "a plain look probes nothing, and shows how old the last proof is", bwrap)

# ---- paging: every record exactly once, while others are written ----
service.post("/v1/invocations", [record(i) for i in range(100, 200)])
ids, path, pages = [], "/v1/invocations?limit=30&session=tests", 0
while path and pages < 50:
    a = ask("GET", path, "/v1/invocations", status=200)
    ids += [r["id"] for r in a.json()["invocations"]]
    link = a.header("link")
    tap.equal(bool(link), a.json()["next"] is not None, "Link and next agree")
    path = re.fullmatch(r'<([^>]+)>; rel="next"', link).group(1) if link else None
    pages += 1
    service.post("/v1/invocations", record(1000 + pages))
tap.equal(len(ids), len(set(ids)), "paging gives no record twice")
tap.ok(set(f"test-{i}" for i in range(100, 200)) <= set(ids) and pages >= 4, "and leaves none out", pages, len(ids))

# ---- the timeline: every record in one stretch, stretches side by side ----
service.post("/v1/invocations", [record(4000 + i, started_at=t, session="tl") for i, t in enumerate(("1969-12-31T23:59:59.500Z", "1970-01-01T00:00:00.500Z", "2025-03-01T00:00:00.000Z", "2025-03-01T00:59:59.999Z", "2025-03-01T01:00:00.000Z", "2025-03-02T12:00:00.000Z", "2026-07-01T00:00:00.000Z"))])
for query, total, most in (("since=2025-03-01T00:00:00Z&until=2025-03-02T00:00:00Z", 3, 25), ("since=2025-03-01T00:00:00Z&until=2025-03-03T00:00:00Z", 4, 49), ("since=2025-01-01", 5, 60), ("", None, 60)):
    rows = ask("GET", "/v1/reports/timeline?session=tl&" + query, "/v1/reports/{name}", status=200).json()["rows"]
    widths = {(datetime.fromisoformat(r["end"][:-1]) - datetime.fromisoformat(r["start"][:-1])).total_seconds() for r in rows}
    joined = all(a["end"] == b["start"] for a, b in zip(rows, rows[1:]))
    counted = sum(r["invocations"] for r in rows)
    tap.ok(len(widths) == 1 and joined and 0 < len(rows) <= most and (total is None or counted == total) and counted == sum(r["ok"] for r in rows), f"timeline {query or 'over everything'}", len(rows), widths, counted, rows[:2])

# ---- ETags ----
for path, template in (("/v1/invocations?limit=5", "/v1/invocations"), ("/v1/reports/verdicts", "/v1/reports/{name}"), ("/v1/signatures", None), ("/v1/chain", None), ("/", None), ("/ui/dashboard.js", "/ui/{file}"), ("/openapi.json", None), ("/v1/causes/userns-uid-map-denied", "/v1/causes/{slug}")):
    tag = ask("GET", path, template).header("etag")
    a = ask("GET", path, template, headers={"If-None-Match": tag}, status=304)
    tap.equal(a.body, b"", f"{path}: 304 has no body")
    ask("GET", path, template, headers={"If-None-Match": f'"other", W/{tag}'}, status=304)
    ask("GET", path, template, headers={"If-None-Match": '"other"'}, status=200)
tag = service.get("/v1/chain").header("etag")
service.post("/v1/invocations", record(2000))
tap.equal(service.get("/v1/chain", {"If-None-Match": tag}).status, 200, "a new record changes the tag")
tap.equal(service.get("/v1/invocations?since=1h").header("etag"), None, "a period that moves with the clock has no tag")

# ---- HEAD, keep-alive, pipelining ----
a = service.one("HEAD", "/v1/chain", None, None)
tap.ok(a.status == 200 and a.body == b"" and int(a.header("content-length")) > 50, "HEAD is GET without the body")
c = service.client()
for i in range(50):
    if c.request("GET", "/livez").status != 200:
        tap.ok(False, "keep-alive")
c.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10)
tap.equal([c.read_answer().status for _ in range(10)], [200] * 10, "requests in a row on one connection")
c.close()

# ---- metrics ----
text = service.get("/metrics").body.decode()
service.post("/v1/classify", {"backend": "bwrap", "exit": 1, "output": ""})
service.post("/v1/invocations", record(3000, backend="my-own-runner", output=None, verdict="ok", requested=None))
text = service.get("/metrics").body.decode()
tap.ok('sandwitness_recorded_total{backend="other"' in text and "my-own-runner" not in text, "an unknown backend counts as other")
tap.ok(re.search(r'sandwitness_http_requests_total\{route="invocations",code="201"\} \d+', text), "requests are counted by route and code")

# ---- everything described was seen ----
missing = []
for path, operations in document["paths"].items():
    for method, operation in operations.items():
        if path not in ("/v1/events",) and (method, path, "200") not in seen and (method, path, "201") not in seen:
            missing.append(f"{method} {path}")
ask("GET", "/ui/dashboard.css", "/ui/{file}", status=200)
tap.ok([m for m in missing if "/ui/" not in m] == [], "every operation of the description was called", missing)
tap.equal(service.stop(), 0, "a clean end")
tap.done()
