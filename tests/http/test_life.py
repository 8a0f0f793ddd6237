"""Start, socket activation, readiness, watchdog, reload of nothing, stop under load, kill -9 under load."""
import json
import os
import random
import signal
import socket
import subprocess
import threading
import time

from service import CLI, DAEMON, SMOKE, Client, Cut, Service, Tap, record

tap = Tap()

# ---- starting ----
s = Service()
p = subprocess.run([DAEMON, "--db", s.db, "--listen", "unix:" + s.path], capture_output=True, env=s.env, timeout=10)
tap.ok(p.returncode == 2 and b"another service listens" in p.stderr and b"fix:" in p.stderr, "a second service does not take the socket away", p.stderr)
tap.equal(s.get("/livez").status, 200, "the first one still answers")
s.process.kill()
s.process.wait()
tap.ok(os.path.exists(s.path), "a killed service leaves its socket file")
again = Service(directory=s.dir)
tap.equal(again.get("/livez").status, 200, "the next one replaces it")
token = again.token
tap.equal(again.stop(), 0, "a clean end")
tap.ok(not os.path.exists(s.path), "which removes the socket file")
again = Service(directory=s.dir)
tap.equal(again.token, token, "the token stays over a restart")
again.stop()
for args, status, words in ((["--listen", "0.0.0.0:1"], 1, b"reverse proxy"), (["--nonsense"], 1, b"--help"), (["--db", "/proc/nothing/audit.db"], 1, b"/proc/nothing"), (["--token-file", "/etc/passwd", "--listen", "127.0.0.1:0"], 2, b"private"), (["--signatures", "/nonexistent"], 1, b"/nonexistent")):
    p = subprocess.run([DAEMON, "--db", s.db, *args], capture_output=True, env=s.env, timeout=10)
    tap.ok(p.returncode == status and words in p.stderr, f"{args}: a clear error", p.returncode, p.stderr)
p = subprocess.run([DAEMON, "--help"], capture_output=True)
tap.ok(p.returncode == 0 and b"--max-body" in p.stdout, "--help")
if os.path.exists(CLI):
    p = subprocess.run([CLI, "serve", "--version"], capture_output=True)
    tap.ok(p.returncode == 0 and p.stdout.startswith(b"sandwitnessd "), "sandwitness serve runs it", p.stdout, p.stderr)
default = Service(listen=[], wait=False)
default.wait_ready(1)
tap.ok(os.path.join(default.dir, "run", "sandwitness", "http.sock") in default.announced[0], "without --listen: a unix socket in the runtime directory", default.announced)
tap.equal(Client(os.path.join(default.dir, "run", "sandwitness", "http.sock")).request("GET", "/livez").status, 200, "which answers")
tap.ok(token not in default.read_log() and not os.path.exists(os.path.join(default.dir, "state", "http-token")), "without TCP there is no token")
default.stop()
six = Service(listen=["[::1]:0", "127.0.0.1:0"]) if socket.has_ipv6 and os.path.exists("/proc/net/if_inet6") else None
if six:
    import re
    ports = [int(re.search(r":(\d+)/", line).group(1)) for line in six.announced]
    a = Client(("::1", ports[0])).request("GET", "/livez", host=f"[::1]:{ports[0]}")
    tap.equal(a.status, 200, "two listeners, one of them [::1]")
    six.stop()

# ---- broken user packs ----
d = Service(wait=False, env={})
d.stop(signal.SIGKILL)
os.makedirs(os.path.join(d.dir, "packs"), exist_ok=True)
with open(os.path.join(d.dir, "packs", "bad.yaml"), "w") as f:
    f.write("schema: 1\nbackend: bwrap\nfatal: 7\n")
d = Service("--signatures", os.path.join(d.dir, "packs"), directory=d.dir)
broken = d.get("/v1/status").json()["service"]["packs"]["broken"]
tap.ok(len(broken) == 1 and "bad.yaml" in broken[0]["where"], "a broken user pack is left out, and the status says so", broken)
tap.equal(d.post("/v1/classify", {"backend": "bwrap", "exit": 1, "output": "bwrap: setting up uid map: Permission denied"}).json()["verdict"], "runner_failed", "the built-in ones stay")
d.stop()

# ---- a service manager ----
folder = s.dir
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.bind(os.path.join(folder, "notify"))
notify.settimeout(5)
passed = socket.socket(socket.AF_UNIX)
passed.bind(os.path.join(folder, "passed.sock"))
passed.listen(16)
tcp = socket.socket()
tcp.bind(("127.0.0.1", 0))
tcp.listen(16)


def child():
    for i, fd in enumerate((passed.fileno(), tcp.fileno())):
        os.dup2(fd, 50 + i)
    for i in range(2):
        os.dup2(50 + i, 3 + i)
        os.set_inheritable(3 + i, True)
    os.environ["LISTEN_PID"] = str(os.getpid())


env = dict(s.env, LISTEN_FDS="2", NOTIFY_SOCKET=os.path.join(folder, "notify"), WATCHDOG_USEC="400000")
pid = os.fork()
if pid == 0:
    try:
        child()
        env["LISTEN_PID"] = str(os.getpid())
        null = os.open("/dev/null", os.O_RDWR)
        os.dup2(null, 1)
        os.execve(DAEMON, [DAEMON, "--db", s.db, "--probe-age", "0s", "--quiet"], env)
    finally:
        os._exit(127)
passed.close()
port = tcp.getsockname()[1]
tcp.close()
message = notify.recv(1000)
tap.ok(message.startswith(b"READY=1"), "readiness is notified", message)
tap.equal(Client(os.path.join(folder, "passed.sock")).request("GET", "/livez").status, 200, "a passed unix socket answers")
tap.equal(Client(("127.0.0.1", port)).request("GET", "/livez", host=f"127.0.0.1:{port}").status, 200, "a passed TCP socket answers")
tap.equal(Client(("127.0.0.1", port)).request("GET", "/v1/chain", host=f"127.0.0.1:{port}").status, 401, "and needs the token")
beats = [notify.recv(1000) for _ in range(3)]
tap.equal(beats, [b"WATCHDOG=1"] * 3, "the watchdog is fed")
os.kill(pid, signal.SIGTERM)
messages = []
while b"STOPPING=1" not in messages and len(messages) < 10:
    messages.append(notify.recv(1000))
tap.ok(b"STOPPING=1" in messages, "stopping is notified")
tap.equal(os.waitpid(pid, 0)[1], 0, "a clean end")
tap.ok(os.path.exists(os.path.join(folder, "passed.sock")), "the manager's socket file is left alone")
notify.close()

# ---- a stop under load: what was answered is there, what was accepted is answered ----


class Writers:
    def __init__(self, service, n, base):
        self.service, self.answered, self.odd = service, [], []
        self.going = threading.Event()
        self.going.set()
        self.threads = [threading.Thread(target=self.write, args=(base + k * 100000,)) for k in range(n)]
        for t in self.threads:
            t.start()

    def write(self, n):
        try:
            c = self.service.client(timeout=20)
            while self.going.is_set():
                n += 1
                a = c.request("POST", "/v1/invocations", record(n))
                if a.status == 201:
                    self.answered.append(f"test-{n}")
                elif a.status == 503:
                    return
                else:
                    self.odd.append((a.status, a.body[:200]))
        except (Cut, OSError):
            pass

    def join(self):
        for t in self.threads:
            t.join()


def there(service, ids):
    """Which of the ids are not in the trail."""
    have, path = set(), "/v1/invocations?limit=1000"
    while path:
        a = service.get(path, timeout=30)
        have |= {r["id"] for r in a.json()["invocations"]}
        link = a.header("link")
        path = link[1:link.index(">")] if link else None
    return set(ids) - have


s = Service(tcp=False)
w = Writers(s, 16, 10 ** 7)
time.sleep(1)
tap.equal(s.stop(), 0, "SIGTERM under load: a clean end")
w.join()
tap.ok(len(w.answered) > 50 and not w.odd, "many were answered", len(w.answered), w.odd[:3])
s = Service(tcp=False, directory=s.dir)
lost = there(s, w.answered)
tap.ok(not lost, "every answered record is there", len(lost), sorted(lost)[:3])
s.stop()

# ---- kill -9 under load ----
random.seed(int(os.environ.get("SW_SEED", "7")))
rounds = 3 if SMOKE else 12
folder = Service(tcp=False)
folder.stop()
answered = []
for i in range(rounds):
    s = Service(tcp=False, directory=folder.dir)
    w = Writers(s, 16, 10 ** 8 + i * 10 ** 7)
    time.sleep(random.uniform(0.15, 0.5))
    s.process.kill()
    s.process.wait()
    w.join()
    answered += w.answered
    if w.odd:
        tap.ok(False, "no odd answers", w.odd[:3])
s = Service(tcp=False, directory=folder.dir)
lost = there(s, answered)
tap.ok(not lost and len(answered) > rounds * 10, f"kill -9 {rounds} times under load: every one of {len(answered)} answered records is there", len(lost), sorted(lost)[:3])
tap.equal(s.get("/readyz").json()["ready"], True, "and the service is ready again")
s.stop()
if os.path.exists(CLI):
    p = subprocess.run([CLI, "verify", "--db", s.db], capture_output=True, env=s.env)
    tap.ok(p.returncode in (0, 3), "the chain is intact", p.returncode, p.stdout[-300:], p.stderr[-300:])

# ---- a disk that is full, a file that is replaced ----
s = Service(tcp=False)
s.post("/v1/invocations", record(1))
os.rename(s.db, s.db + ".gone")
a = s.post("/v1/invocations", record(2))
tap.ok(a.status >= 500 and a.problem == "store-failed", "a removed trail: a clear error, not a success", a.status, a.body[:300])
a = s.get("/readyz")
tap.ok(a.status == 503 and a.json()["ready"] is False, "and not ready", a.body)
os.replace(s.db + ".gone", s.db)
a = s.post("/v1/invocations", record(3))
tap.ok(a.status == 201, "when it is back, it goes on", a.status, a.body[:300])
s.stop()
tap.done()
