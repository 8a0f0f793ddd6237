"""What pages of other sites, other users' tools and broken clients try: refused or bounded, while
the unix socket keeps answering."""
import os
import resource
import socket
import threading
import time

from service import Client, Cut, Service, Tap, SMOKE

tap = Tap()
service = Service("--timeout", "2s", "--max-connections", "32", "--stall", "2s", "--heartbeat", "300ms")
MIB = 1 << 20


def socket_answers(name):
    start, status = time.monotonic(), None
    while status != 200 and time.monotonic() - start < 1:
        try:
            status = service.get("/livez", timeout=5).status
        except (OSError, Cut) as e:
            status = repr(e)
            time.sleep(0.02)
    took = time.monotonic() - start
    tap.ok(status == 200 and took < 1, f"{name}: the unix socket answers within a second", f"{status} after {took:.2f} s")


def refused(name, got, status, problem):
    tap.ok(got.status == status and got.problem == problem, name, got.status, got.body[:300])
    if got.problem:
        j = got.json()
        tap.ok(j["status"] == status and j["title"] and j["fix"], f"{name}: says how to mend it", j)
    tap.ok(not any(h.startswith("access-control-") for h in got.headers), f"{name}: no CORS header", got.headers)


# ---- names: a rebound DNS name arrives with its own Host ----
for tcp in (False, True):
    where = "tcp" if tcp else "unix"
    own = service.host if tcp else "localhost"
    auth = service.bearer if tcp else {}

    def get(path="/v1/chain", host=own, headers=None, method="GET", body=None, **more):
        return service.one(method, path, body, {**auth, **(headers or {})}, tcp=tcp, host=host, **more)

    tap.equal(get().status, 200, f"{where}: its own name may pass")
    for bad in ("evil.example", "evil.example:" + str(service.port), "localhost.evil.example", "127.0.0.1.evil.example", "0.0.0.0", "127.0.0.1:1", "localhost:", "LOCALHOST ", "[::1]x", "127.0.0.1@evil.example", ""):
        a = get(host=bad)
        refused(f"{where}: Host {bad!r}", a, 421, "host-refused")
    tap.ok("--allow-host" in get(host="evil.example").json()["fix"], f"{where}: the answer names the setting")
    a = get(host=own, headers={"host": "evil.example"})
    refused(f"{where}: two Hosts", a, 421, "host-refused")
    a = get(host=own, headers={"Host": own})
    refused(f"{where}: the same Host twice", a, 421, "host-refused")
    refused(f"{where}: no Host", get(host=None), 421, "host-refused")
    c = service.client(tcp)
    c.send(b"GET /v1/chain HTTP/1.0\r\n\r\n")
    refused(f"{where}: HTTP/1.0 without Host", c.read_answer(), 421, "host-refused")
    c.close()

    # ---- pages of other sites ----
    for origin in ("https://evil.example", "null", "http://localhost:1", "file://", "http://127.0.0.1"):
        if tcp and origin == "http://127.0.0.1":
            continue
        refused(f"{where}: Origin {origin}", get(headers={"Origin": origin}), 403, "origin-refused")
    if tcp:
        tap.equal(get(headers={"Origin": "http://" + own}).status, 200, "tcp: the dashboard's own origin may pass")
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200), ("", 403)):
        tap.equal(get(headers={"Sec-Fetch-Site": site}).status, status, f"{where}: Sec-Fetch-Site {site!r} gives {status}")
    a = get("/v1/classify", method="OPTIONS", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"})
    refused(f"{where}: a preflight", a, 403, "origin-refused")
    a = get("/v1/classify", method="OPTIONS")
    refused(f"{where}: OPTIONS", a, 405, "method-not-allowed")
    tap.equal(a.header("allow"), "POST", f"{where}: Allow names the methods")
    for kind in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", "text/plain; application/json"):
        a = get("/v1/invocations", method="POST", body=b"{}", content_type=kind)
        refused(f"{where}: POST with content type {kind}", a, 415, "media-type")
        a = get("/v1/invocations", method="POST", body=b"{}", content_type=kind, headers={"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"})
        refused(f"{where}: cross-site POST with content type {kind}", a, 403, "origin-refused")
    a = get("/v1/invocations", method="POST", body=b"{}", headers={"Content-type": "text/plain"})
    refused(f"{where}: POST with two content types", a, 415, "media-type")
    for method in ("PUT", "DELETE", "PATCH", "TRACE"):
        a = get("/v1/status", method=method)
        refused(f"{where}: {method}", a, 405, "method-not-allowed")

# ---- tokens ----
def tcp_get(headers, path="/v1/chain"):
    return service.get(path, headers, tcp=True, host=service.host)


for path in ("/v1/status", "/v1/invocations", "/v1/reports/summary", "/v1/events", "/v1/signatures", "/v1/chain", "/metrics", "/nothing/here"):
    refused(f"no token: {path}", tcp_get({}, path), 401, "token-missing")
    refused(f"wrong token: {path}", tcp_get({"Authorization": "Bearer " + "0" * 64}, path), 401, "token-wrong")
tap.equal(tcp_get({}).header("www-authenticate"), 'Bearer realm="sandwitness"', "WWW-Authenticate says what is wanted")
for bad in (service.token, "Bearer", "Bearer " + service.token[:-1], "Bearer " + service.token + "0", "Basic " + service.token, "Bearer " + service.token.upper() + "x"):
    tap.equal(tcp_get({"Authorization": bad}).status, 401, f"Authorization {bad[:12]}… is refused")
tap.equal(tcp_get({"Authorization": "bearer " + service.token}).status, 200, "the scheme's case does not matter")
a = tcp_get({"Authorization": "Bearer " + service.token, "authorization": "Bearer x"})
tap.equal(a.status, 401, "two Authorization headers are refused")
for path in ("/", "/ui/dashboard.js", "/livez", "/readyz", "/openapi.json"):
    a = tcp_get({}, path)
    tap.equal(a.status, 200, f"{path} needs no token")
    tap.ok(service.token not in a.body.decode("utf-8", "replace"), f"{path} does not give the token away")
tap.equal(os.stat(os.path.join(service.dir, "state", "http-token")).st_mode & 0o777, 0o600, "the token file is private")
tap.equal(os.stat(service.path).st_mode & 0o777, 0o600, "the socket is private")

# ---- texts that cost much to take apart or to classify ----
for unit in (b"[],", b"{},", b'{"":1},'):
    body = b"[" + unit * (4000000 // len(unit)) + b"0]"
    refused(f"4 MB of {unit.decode()}", service.post("/v1/classify", body), 413, "body-too-large")
    refused(f"4 MB of {unit.decode()} as records", service.post("/v1/invocations", body), 413, "body-too-large")
body = {"backend": "bwrap", "exit": 1, "output": "[{,:" * 1000000}
tap.equal(service.post("/v1/classify", body).status, 200, "the same bytes in a text are cheap")
words = b" permission denied operation not permitted read-only file system\n"
for unit in (b"=/", b" /a", b"=a/"):
    body = (unit * 700 + words) * 500
    start = time.monotonic()
    a = service.post("/v1/classify?backend=bwrap&exit=1", body, content_type="application/octet-stream", timeout=60)
    tap.ok(a.status == 200 and a.json()["verdict"] == "ok" and time.monotonic() - start < 20, f"near misses of {unit.decode()!r} are decided soon")

# ---- odd requests ----
tap.equal(service.get("/v1/chain%00x").status, 400, "a NUL in the path is refused")
tap.equal(service.get("/v1/invocations?limit=1%002").status, 400, "a NUL in a parameter is refused")
tap.equal(service.get("/v1/invocations?limit=1&limit=2").status, 400, "a repeated parameter is refused")
tap.equal(service.get("/v1/invocations?limits=1").problem, "bad-parameter", "an unknown parameter is refused")
tap.equal(service.get("/ui/../v1/chain").status, 404, "no way out of /ui")
tap.equal(service.get("/ui/openapi.json").status, 404, "/ui gives out its own files only")
tap.equal(service.get("//v1/chain").status, 404, "no doubled slashes")


def raw(data, tcp=False, timeout=5):
    c = Client(service.tcp if tcp else service.path, timeout)
    try:
        c.send(data)
        return c.read_answer()
    except (Cut, ConnectionError):
        return None
    finally:
        c.close()


HEAD = b"POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
a = raw(HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}")
tap.ok(a and a.status == 400, "two Content-Lengths are refused", a and a.status)
a = raw(HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
tap.ok(a and a.status == 400, "a length and a coding together are refused", a and a.status)
a = raw(HEAD + b"Transfer-Encoding: gzip\r\n\r\n{}")
tap.ok(a and a.status == 400, "an unknown transfer coding is refused", a and a.status)
a = raw(HEAD + b"Content-Length: -1\r\n\r\n{}")
tap.ok(a is None or a.status in (400, 413), "a negative length is refused", a and a.status)
a = raw(HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n{}")
tap.ok(a is None or a.status in (400, 413), "a monstrous length is refused", a and a.status)
for junk in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n", b"\0" * 100 + b"\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", os.urandom(2000) + b"\r\n\r\n"):
    a = raw(junk)
    tap.ok(a is None or a.status >= 400, f"no request at all: {junk[:8]!r}", a and a.status)
for body in (b"", b"{", b"[]", b"nul", b"\xff\xfe", b'{"backend":"bwrap","exit":1e99}', b"[" * 100000, b'{"a":1,"a":2,"backend":"bwrap","exit":0}'):
    a = service.post("/v1/classify", body)
    tap.ok(a.status == 400 and a.problem == "bad-body", f"body {body[:24]!r} is refused", a.status, a.body[:200])
socket_answers("odd requests")

# ---- too much ----
before = service.memory_kib()


def upload(n, chunked=False, expect=False, tcp=True):
    c = Client(service.tcp if tcp else service.path, 20)
    head = f"POST /v1/classify?backend=bwrap&exit=1 HTTP/1.1\r\nHost: {service.host if tcp else 'localhost'}\r\nAuthorization: Bearer {service.token}\r\nContent-Type: application/octet-stream\r\n"
    head += "Transfer-Encoding: chunked\r\n" if chunked else f"Content-Length: {n}\r\n"
    head += "Expect: 100-continue\r\n" if expect else ""
    try:
        c.send(head.encode() + b"\r\n")
        if expect:
            return c.read_answer()
        sent = 0
        block = b"x" * 65536
        while sent < n:
            c.send(b"10000\r\n" + block + b"\r\n" if chunked else block)
            sent += len(block)
        if chunked:
            c.send(b"0\r\n\r\n")
        return c.read_answer()
    except (Cut, ConnectionError):
        return None
    finally:
        c.close()


a = upload(8 * MIB)
tap.ok(a and a.status == 200, "a body of exactly the limit is taken", a and a.body[:200])
a = upload(8 * MIB + 65536)
tap.ok(a and a.status == 413, "a body just over the limit: 413", a and a.status)
a = upload(100 * MIB)
tap.ok(a and a.status == 413 and a.problem == "body-too-large", "a body of 100 MiB: 413, after it was sent", a and a.status)
a = upload(100 * MIB, expect=True)
tap.ok(a and a.status == 413, "a body of 100 MiB with Expect: 413 before it is sent", a and a.status)
a = upload(100 * MIB, chunked=True)
tap.ok(a and a.status == 413, "a chunked body of 100 MiB: 413", a and a.status)
a = upload(400 * MIB, chunked=True)
tap.ok(a is None or a.status == 413, "an endless chunked body is cut off", a and a.status)
tap.ok(service.memory_kib() < before + 80 * 1024, "large bodies leave no memory behind", before, service.memory_kib())
a = raw(b"GET /v1/chain HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 20000 + b"\r\n\r\n")
tap.ok(a and a.status == 431 and a.problem == "header-too-large", "a header over 16 KiB: 431", a and a.status)
a = raw(b"GET /v1/chain HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 12000 + b"\r\n\r\n")
tap.ok(a and a.status == 200, "a header under 16 KiB passes", a and a.status)
c = service.client()
sent, answer = 0, None
try:
    c.send(b"GET /v1/chain HTTP/1.1\r\nHost: localhost\r\n")
    while sent < 4 * MIB:
        c.send(b"X-%d: " % sent + b"y" * 1000 + b"\r\n")
        sent += 1000
except (ConnectionError, socket.timeout):
    pass
tap.ok(sent < MIB, "an endless header is cut off", f"{sent} bytes were taken")
c.close()
socket_answers("too much")
# text that swells when it is taken apart: 8 MiB of it become 200 MiB
swell = b'{"backend":"bwrap","exit":1,"x":[' + b"1," * 4000000 + b"1]}"
statuses = []
threads = [threading.Thread(target=lambda: statuses.append(service.post("/v1/classify", swell, timeout=60).status)) for _ in range(6)]
for t in threads:
    t.start()
for t in threads:
    t.join()
with open(f"/proc/{service.process.pid}/status") as f:
    peak = int([line for line in f if line.startswith("VmHWM")][0].split()[1])
sanitized = "ASAN_BUILD" in os.environ or "TSAN_BUILD" in os.environ  # shadow memory counts as memory
tap.ok(statuses == [200] * 6 and (sanitized or peak < 500 * 1024), "six swelling bodies at once are taken one after the other", statuses, peak)

# ---- slow, half-closed and idle clients: on TCP all places are taken, the socket answers ----
def tcp_connections(n):
    out = []
    for _ in range(n):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(service.tcp)
        out.append(s)
    return out


def tcp_recovers(name, seconds):
    """While the attack goes on, the deadlines clear places: within `seconds` TCP answers again."""
    start, status, tries = time.monotonic(), None, 0
    while time.monotonic() - start < seconds and status != 200:
        tries += 1
        try:
            status = service.get("/livez", tcp=True, host=service.host, timeout=5).status
        except (OSError, Cut):
            time.sleep(0.1)
    tap.ok(status == 200, f"{name}: TCP answers again once the deadline has cleared the places", f"{tries} tries in {time.monotonic() - start:.1f} s")
    if tries == 1:
        tap.note(f"{name}: at the first try")


stop = threading.Event()
slow = tcp_connections(32)
time.sleep(0.3)


def drip():
    # a byte well within every idle time-out, for ever
    while not stop.wait(0.4):
        for s in slow:
            try:
                s.send(b"G" if drip.first else b"X")
            except OSError:
                pass
        drip.first = False


drip.first = True
thread = threading.Thread(target=drip)
thread.start()
socket_answers("slowloris on every TCP place")
tcp_recovers("slowloris", 6)
stop.set()
thread.join()
for s in slow:
    s.close()

# bodies that drip
slow = []
for _ in range(32):
    c = Client(service.tcp)
    c.send(f"POST /v1/classify HTTP/1.1\r\nHost: {service.host}\r\nAuthorization: Bearer {service.token}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n".encode())
    slow.append(c)
stop.clear()


def drip_body():
    while not stop.wait(0.4):
        for c in slow:
            try:
                c.sock.send(b" ")
            except OSError:
                pass


thread = threading.Thread(target=drip_body)
thread.start()
socket_answers("slow bodies on every TCP place")
tcp_recovers("slow bodies", 12)
stop.set()
thread.join()
for c in slow:
    c.close()

# answers that are not taken
slow = []
for _ in range(8):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    s.connect(service.tcp)
    for _ in range(40):
        try:
            s.send(f"GET /v1/signatures HTTP/1.1\r\nHost: {service.host}\r\nAuthorization: Bearer {service.token}\r\n\r\n".encode())
        except OSError:
            break
    slow.append(s)
socket_answers("answers that nobody takes")
for s in slow:
    s.close()

# half-closed
for tail in (b"", b"GET /v1/chain HTTP/1.1\r\nHost:", b"POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"):
    half = []
    for _ in range(20):
        s = socket.socket(socket.AF_UNIX)
        s.connect(service.path)
        s.send(tail)
        s.shutdown(socket.SHUT_WR)
        half.append(s)
    socket_answers(f"20 half-closed sockets after {tail[:12]!r}")
    for s in half:
        s.close()
# the sixty before may still have their places: who comes while all are taken is cut off
until, status = time.monotonic() + 20, None
while status is None and time.monotonic() < until:
    c = service.client()
    c.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
    c.sock.shutdown(socket.SHUT_WR)
    try:
        status = c.read_answer().status
    except (Cut, ConnectionResetError):
        time.sleep(0.2)
    c.close()
tap.equal(status, 200, "a client that half-closes after its request gets its answer")

# 10,000 idle connections
many = 1000 if SMOKE else 10000
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
wanted = many + 200
if hard < wanted:
    many = hard - 200
resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
idle = tcp_connections(many)
time.sleep(0.5)
tap.note(f"{many} idle connections to TCP")
socket_answers(f"{many} idle connections")
with open(f"/proc/{service.process.pid}/status") as f:
    threads = int([line for line in f if line.startswith("Threads:")][0].split()[1])
tap.ok(threads < 32 * 2 + 20, "idle connections take no more threads than there are places", threads)
for s in idle:
    s.close()
tcp_recovers("idle connections", 20)

# ---- the service is as before ----
tap.ok(service.process.poll() is None, "the service still runs")
until = time.monotonic() + 10
while (fds := len(os.listdir(f"/proc/{service.process.pid}/fd"))) >= 64 and time.monotonic() < until:
    time.sleep(0.1)
tap.ok(fds < 64, "no descriptor is left open", fds)
m = service.get("/metrics").body.decode()
tap.ok("evil" not in m and "\x00" not in m, "nothing that a client sent became a label")
tap.equal(service.stop(), 0, "a clean end")
tap.done()
