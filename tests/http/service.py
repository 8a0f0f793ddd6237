"""What the HTTP tests share: a service of their own, a client that can send anything, and TAP.

SANDWITNESSD and SANDWITNESS come from ctest; run by hand they are looked for in build/.
Everything stays on loopback and unix sockets.
"""
import atexit
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.environ.get("SW_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("SW_BUILD_DIR") or os.path.join(ROOT, "build")
DAEMON = os.environ.get("SANDWITNESSD") or os.path.join(BUILD, "sandwitnessd")
CLI = os.environ.get("SANDWITNESS") or os.path.join(BUILD, "sandwitness")
SMOKE = os.environ.get("SW_TEST_SMOKE") == "1"


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def ok(self, good, name, *detail):
        self.count += 1
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}", flush=True)
        if not good:
            self.failed += 1
            for line in detail:
                for part in str(line).splitlines()[:30]:
                    print(f"#   {part[:400]}", flush=True)
        return good

    def equal(self, got, wanted, name):
        return self.ok(got == wanted, name, f"got:    {got!r}", f"wanted: {wanted!r}")

    def note(self, text):
        print(f"# {text}", flush=True)

    def skip(self, name, why):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {why}", flush=True)

    def done(self):
        print(f"1..{self.count}", flush=True)
        sys.exit(1 if self.failed else 0)


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers  # names in lower case; a list of values each
        self.body = body

    def header(self, name):
        values = self.headers.get(name.lower())
        return values[0] if values else None

    def json(self):
        return json.loads(self.body)

    @property
    def problem(self):
        """The last part of the problem's type, or None."""
        if self.header("content-type") != "application/problem+json":
            return None
        return self.json()["type"].rsplit(":", 1)[1]


class Cut(Exception):
    """The service ended the connection without an answer."""


class Client:
    """One connection. Sends what it is told, however wrong."""

    def __init__(self, address, timeout=10):
        if isinstance(address, str):
            self.sock = socket.socket(socket.AF_UNIX)
        else:
            self.sock = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        self.sock.settimeout(timeout)
        self.sock.connect(address)
        self.rest = b""
        self.text = b""  # of a stream: what is not a whole event yet

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def read_more(self):
        data = self.sock.recv(65536)
        if not data:
            raise Cut()
        self.rest += data

    def read_head(self):
        while b"\r\n\r\n" not in self.rest:
            self.read_more()
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers.setdefault(name.lower(), []).append(value.strip())
        return int(lines[0].split()[1]), headers

    def read_answer(self, head_only=False):
        status, headers = self.read_head()
        if status == 100:
            return self.read_answer(head_only)
        body = b""
        if head_only or status in (204, 304):
            pass
        elif "chunked" in headers.get("transfer-encoding", [""])[0]:
            while True:
                while b"\r\n" not in self.rest:
                    self.read_more()
                size, self.rest = self.rest.split(b"\r\n", 1)
                n = int(size, 16)
                while len(self.rest) < n + 2:
                    self.read_more()
                body += self.rest[:n]
                self.rest = self.rest[n + 2:]
                if not n:
                    break
        else:
            n = int(headers.get("content-length", ["0"])[0])
            while len(self.rest) < n:
                self.read_more()
            body, self.rest = self.rest[:n], self.rest[n:]
        return Answer(status, headers, body)

    def request(self, method, path, body=None, headers=None, host="localhost", content_type="application/json"):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1"]
        if host is not None:
            lines.append(f"Host: {host}")
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
            if content_type:
                lines.append(f"Content-Type: {content_type}")
        for name, value in (headers or {}).items():
            lines.append(f"{name}: {value}")
        self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b""))
        return self.read_answer(method == "HEAD")

    def events(self, seconds, want=None):
        """Server-sent events for at most so long, or until `want` of them: [(id, event, data)]."""
        found, until = [], time.monotonic() + seconds
        while time.monotonic() < until and (want is None or len(found) < want):
            try:
                self.sock.settimeout(max(0.05, until - time.monotonic()))
                while b"\r\n" not in self.rest:
                    self.read_more()
                size, rest = self.rest.split(b"\r\n", 1)
                n = int(size, 16)
                while len(self.rest) < len(size) + 2 + n + 2:
                    self.read_more()
                self.text += self.rest[len(size) + 2:len(size) + 2 + n]
                self.rest = self.rest[len(size) + 2 + n + 2:]
                if not n:
                    found.append((None, "END", None))
                    break
            except (socket.timeout, Cut) as e:
                if isinstance(e, Cut):
                    found.append((None, "CUT", None))
                    break
                break
            while b"\n\n" in self.text:
                block, self.text = self.text.split(b"\n\n", 1)
                event = {"id": None, "event": None, "data": None}
                for line in block.decode().split("\n"):
                    if line.startswith(":"):
                        event["event"] = event["event"] or "comment"
                    name, _, value = line.partition(": ")
                    if name in event:
                        event[name] = value
                if event["data"]:
                    event["data"] = json.loads(event["data"])
                found.append((event["id"], event["event"], event["data"]))
        return found


class Service:
    def __init__(self, *options, tcp=True, listen=None, env=None, directory=None, wait=True):
        self.own = directory is None
        self.dir = directory or tempfile.mkdtemp(prefix="sw-http-")
        atexit.register(self.cleanup)
        self.path = os.path.join(self.dir, "http.sock")
        self.db = os.path.join(self.dir, "state", "audit.db")
        self.env = dict(os.environ, XDG_STATE_HOME=os.path.join(self.dir, "state"), XDG_CONFIG_HOME=os.path.join(self.dir, "config"),
                        XDG_RUNTIME_DIR=os.path.join(self.dir, "run"), **(env or {}))
        for name in ("NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "WATCHDOG_USEC", "SANDWITNESS_DB"):
            if name not in (env or {}):
                self.env.pop(name, None)
        args = [DAEMON, "--db", self.db]
        for where in listen if listen is not None else [f"unix:{self.path}"] + (["127.0.0.1:0"] if tcp else []):
            args += ["--listen", where]
        if not any(str(o).startswith("--probe-age") for o in options):
            args += ["--probe-age", "0s"]
        self.args = args + ["--print-token", *map(str, options)]
        self.log = open(os.path.join(self.dir, "log"), "ab")
        self.process = subprocess.Popen(self.args, stdout=subprocess.PIPE, stderr=self.log, env=self.env)
        self.token = self.port = None
        self.announced = []
        if wait:
            self.wait_ready(len([a for a in self.args if a == "--listen"]) or 1)

    def wait_ready(self, lines):
        for _ in range(lines):
            line = self.process.stdout.readline().decode()
            if not line:
                raise RuntimeError("the service did not start: " + self.read_log())
            self.announced.append(line)
            m = re.search(r"http://(?:\[::1\]|127\.0\.0\.1):(\d+)/#token=(\S+)", line)
            if m:
                self.port, self.token = int(m.group(1)), m.group(2)

    def read_log(self):
        with open(os.path.join(self.dir, "log"), errors="replace") as f:
            return f.read()

    @property
    def tcp(self):
        return ("127.0.0.1", self.port)

    @property
    def host(self):
        return f"127.0.0.1:{self.port}"

    @property
    def bearer(self):
        return {"Authorization": "Bearer " + self.token}

    def client(self, tcp=False, timeout=10):
        return Client(self.tcp if tcp else self.path, timeout)

    def get(self, path, headers=None, **more):
        return self.one("GET", path, None, headers, **more)

    def post(self, path, body, headers=None, **more):
        return self.one("POST", path, body, headers, **more)

    def one(self, method, path, body, headers, tcp=False, timeout=10, **more):
        c = self.client(tcp, timeout)
        try:
            return c.request(method, path, body, headers, **more)
        finally:
            c.close()

    def memory_kib(self):
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))

    def stop(self, number=signal.SIGTERM, timeout=20):
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(timeout)
        self.process.stdout.close()
        return status

    def cleanup(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        if self.own:
            shutil.rmtree(self.dir, ignore_errors=True)


def record(n, **more):
    """A complete record as a runtime posts it."""
    r = {"id": f"test-{n}", "backend": "bwrap", "exit": 0, "command": ["true", str(n)], "output": "", "requested": "bwrap", "session": "tests"}
    r.update(more)
    return {k: v for k, v in r.items() if v is not None}
