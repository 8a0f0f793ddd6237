"""Event streams: live, resumed, from other processes, bounded, slow ones dropped and told."""
import json
import os
import re
import socket
import subprocess
import threading
import time

from service import CLI, Client, Service, Tap, record

tap = Tap()
service = Service("--heartbeat", "300ms", "--stall", "4s", "--max-streams", "3", "--max-connections", "32")


def stream(last=None, path="/v1/events", timeout=10):
    c = service.client(timeout=timeout)
    extra = f"Last-Event-ID: {last}\r\n" if last is not None else ""
    c.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{extra}\r\n".encode())
    status, headers = c.read_head()
    return c, status, headers


def recorded(events):
    return [(i, d["id"]) for i, e, d in events if e in ("begin", "end", "complete")]


# ---- live ----
c, status, headers = stream()
tap.equal((status, headers["content-type"][0], headers["cache-control"][0]), (200, "text/event-stream", "no-store"), "a stream opens")
hello = c.events(2, 1)[0]
tap.equal((hello[1], hello[2]["head"]), ("hello", service.get("/v1/chain").json()["seq"]), "it says where it begins")
times = []
for more in range(3):  # a busy machine may be late once, not three times
    start = time.monotonic()
    number = 2000 + more if more else 1
    seq = service.post("/v1/invocations", record(number)).json()["seq"]
    event = None
    while event is None and time.monotonic() - start < 10:
        event = next((e for e in c.events(2, 1) if e[1] != "comment"), None)
    times.append(time.monotonic() - start)
    if times[-1] < 0.5:
        break
tap.ok(times[-1] < 0.5, "an event follows at once", times)
tap.equal((event[0], event[1], event[2]["id"]), (str(seq), "complete", f"test-{number}"), "with the row's number as its id")
tap.equal(event[2], {k: v for k, v in service.get("/v1/invocations?limit=1").json()["invocations"][0].items()}, "and the same object as the list")
quiet = c.events(1.0)
tap.ok(len([e for e in quiet if e[1] == "comment"]) >= 2, "a heartbeat while nothing happens", quiet)

# ---- another process writes to the file itself ----
if os.path.exists(CLI):
    env = dict(os.environ, XDG_STATE_HOME=os.path.join(service.dir, "state"))
    start = time.monotonic()
    p = subprocess.run([CLI, "record", "--db", service.db, "-"], input=json.dumps(record(2)).encode() + b"\n", capture_output=True, env=env)
    if tap.ok(p.returncode == 0, "another process records", p.stderr.decode()):
        written = time.monotonic()
        got = []
        while time.monotonic() - written < 2 and not got:
            got = recorded(c.events(0.2))
        tap.ok([i for _, i in got] == ["test-2"] and time.monotonic() - written < 1, "its commit appears within a second", got, time.monotonic() - written)
else:
    tap.ok(False, "another process records", CLI + " is missing")
c.close()

# ---- resume ----
ids = [service.post("/v1/invocations", record(i)).json()["seq"] for i in range(10, 40)]
c, *_ = stream(ids[4])
got = recorded(c.events(3, 26))
tap.equal([int(i) for i, _ in got], ids[5:], "resumed by Last-Event-ID: everything after it, in order, once")
c.close()
c, *_ = stream(path=f"/v1/events?after={ids[27]}")
tap.equal([int(i) for i, _ in recorded(c.events(3, 3))], ids[28:], "resumed by a parameter")
service.post("/v1/invocations", record(40))
tap.equal([i for _, i in recorded(c.events(2, 1))], ["test-40"], "and live afterwards")
c.close()
c, *_ = stream(10 ** 15)
hello = c.events(1, 1)[0]
tap.equal(hello[2]["after"], hello[2]["head"], "an id from the future begins now")
c.close()
for bad in ("x", "-1", "1x", "99999999999999999999999999"):
    c, status, _ = stream(bad)
    tap.equal(status, 400, f"Last-Event-ID {bad} is refused")
    c.close()
tap.equal(service.one("HEAD", "/v1/events", None, None).status, 405, "HEAD would never end")
# a long way back: read from the trail itself, across more than one ring
service.post("/v1/invocations", [record(i) for i in range(5000, 5100)])
for k in range(51, 65):
    service.post("/v1/invocations", [record(i) for i in range(k * 100, k * 100 + 100)])
c, *_ = stream(0)
want = len(times) + 1 + 30 + 1 + 15 * 100
got, deadline = [], time.monotonic() + 20
while len(got) < want and time.monotonic() < deadline:
    got += recorded(c.events(0.5, 200))
tap.ok(len(got) == want == len(set(got)), "resumed from the very beginning: all of it, once", len(got), want)
tap.equal([int(i) for i, _ in got], sorted(int(i) for i, _ in got), "in order")
c.close()

# ---- bounded ----
deadline = time.monotonic() + 10  # those closed above are seen to be gone at the next heartbeat
while "sandwitness_event_streams 0\n" not in service.get("/metrics").body.decode() and time.monotonic() < deadline:
    time.sleep(0.05)
held = [stream() for _ in range(3)]
tap.equal([h[1] for h in held], [200, 200, 200], "as many as allowed")
c, status, headers = stream()
tap.equal((status, "retry-after" in headers), (503, True), "one more is refused, with the time to wait")
c.close()
tap.equal(service.get("/livez").status, 200, "streams do not keep others out")
for h in held:
    h[0].close()
deadline = time.monotonic() + 5
while time.monotonic() < deadline:
    c, status, _ = stream()
    c.close()
    if status == 200:
        break
    time.sleep(0.1)
tap.equal(status, 200, "listeners that are gone free their places")

# ---- slow listeners ----
def slow_stream():
    s = socket.socket(socket.AF_UNIX)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(15)
    s.connect(service.path)
    s.send(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    c = Client.__new__(Client)
    c.sock, c.rest, c.text = s, b"", b""
    c.read_head()
    return c


c = slow_stream()
c.events(1, 1)
start = time.monotonic()
n = 0
while n < 1500:  # more than the ring holds, while the listener takes nothing
    a = service.post("/v1/invocations", [record(100000 + n + i, labels={"pad": "x" * 200}) for i in range(100)])
    n += 100
tap.ok(time.monotonic() - start < 30, "a listener that takes nothing does not slow the writers down", time.monotonic() - start)
got = c.events(8)
last = [e for e in got if e[1] in ("dropped", "CUT", "END")]
tap.ok(last and last[0][1] == "dropped", "when it reads again it is told that it was dropped", got[-3:])
if last and last[0][1] == "dropped":
    tap.ok("Last-Event-ID" in last[0][2]["fix"], "and how to go on", last[0])
    resume = last[0][2]["last"]
    tap.equal(str(resume), recorded(got)[-1][0], "from the last one that it got")
    again, *_ = stream(resume)
    first = recorded(again.events(3, 2))
    tap.ok(first and int(first[0][0]) > resume, "resuming there loses nothing", first[:1], resume)
    again.close()
c.close()
c = slow_stream()
deadline = time.monotonic() + 20
n = 0
while time.monotonic() < deadline:
    service.post("/v1/invocations", [record(200000 + n + i, labels={"pad": "x" * 200}) for i in range(50)])
    n += 50
    text = service.get("/metrics").body.decode()
    if "sandwitness_event_streams 0\n" in text:
        break
    time.sleep(0.1)
tap.ok("sandwitness_event_streams 0\n" in text, "one that never reads again is cut", re.findall(r"sandwitness_event_streams.*", text))
c.close()
tap.ok(re.search(r'dropped_total\{reason="(behind|stalled)"\} [1-9]', service.get("/metrics").body.decode()), "drops are counted")

# ---- the end ----
c, *_ = stream()
c.events(1, 1)
result = {}
t = threading.Thread(target=lambda: result.update(status=service.stop()))
t.start()
got = c.events(5)
t.join()
tap.ok(any(e[1] == "stopping" for e in got), "a stop tells the listeners", got)
tap.equal(result["status"], 0, "a clean end, streams notwithstanding")
tap.done()
