"""The systemd units: exposure by systemd's own analysis, the options they pass, and life without
writable code, which the unit forbids."""
import configparser
import ctypes
import os
import re
import shlex
import shutil
import subprocess

from service import DAEMON, ROOT, Service, Tap

tap = Tap()
UNIT = os.path.join(ROOT, "packaging", "sandwitness.service")


def read(path):
    p = configparser.RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=("#",))
    p.optionxform = str
    p.read(path)
    return p


unit, sock = read(UNIT), read(os.path.join(ROOT, "packaging", "sandwitness.socket"))
tap.equal(unit["Service"]["Type"], "notify", "readiness is told")
tap.ok("WatchdogSec" in unit["Service"], "with a watchdog")
tap.equal(sock["Socket"]["Accept"], "no", "the socket is passed as it is")
for name in ("NoNewPrivileges", "MemoryDenyWriteExecute", "RestrictNamespaces", "ProtectKernelTunables", "PrivateDevices", "LockPersonality"):
    tap.equal(unit["Service"][name], "yes", name)
tap.equal(unit["Service"]["PrivateUsers"], "no", "the writers' uids stay readable")
analyze = shutil.which("systemd-analyze")
if analyze:
    p = subprocess.run([analyze, "security", "--offline=true", "--no-pager", UNIT], capture_output=True, text=True)
    m = re.search(r"exposure level for \S+: ([0-9.]+)", p.stdout)
    tap.ok(m and float(m.group(1)) <= 1.5, "exposure at most 1.5", m and m.group(0), p.stderr[:300])
    if m:
        tap.note(m.group(0))
else:
    tap.note("systemd-analyze is not installed: the directives above stand for it")
args = shlex.split(unit["Service"]["ExecStart"])
tap.equal(args[:2], ["/usr/bin/sandwitness", "serve"], "the unit runs sandwitness serve")
p = subprocess.run([DAEMON, *args[2:], "--version"], capture_output=True)
tap.equal(p.returncode, 0, "with options that exist")

# Without writable code: the kernel's own switch, kept over exec.
PR_SET_MDWE, PR_GET_MDWE = 65, 66
libc = ctypes.CDLL(None, use_errno=True)
pid = os.fork()
if pid == 0:
    os._exit(0 if libc.prctl(PR_SET_MDWE, 1, 0, 0, 0) == 0 else 1)
if os.waitpid(pid, 0)[1] == 0:
    wrapper = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"sw-mdwe-{os.getpid()}.py")
    with open(wrapper, "w") as f:
        f.write("#!/usr/bin/env python3\nimport ctypes,os,sys\nassert ctypes.CDLL(None).prctl(65,1,0,0,0)==0\nos.execv(%r,[%r]+sys.argv[1:])\n" % (DAEMON, DAEMON))
    os.chmod(wrapper, 0o755)
    import service
    service.DAEMON = wrapper
    s = Service("--confined", tcp=False)
    a = s.post("/v1/classify", {"backend": "bwrap", "exit": 1, "output": "touch: cannot touch '/etc/x': Read-only file system\n"})
    tap.equal((a.status, a.json().get("verdict"), a.json().get("resource")), (200, "sandbox_denied", "/etc/x"), "without writable code it classifies as ever")
    j = s.get("/v1/status?probe=bwrap").json()
    b = [x for x in j["backends"] if x["id"] == "bwrap"][0]
    tap.equal((b["probe"]["result"], j["service"]["confined"]), ("not_probed", True), "a confined service does not judge the machine's sandboxes")
    if b["found"]:
        tap.equal(b["probe"]["cause"], "service-confined", "and says why")
    tap.equal(s.stop(), 0, "a clean end")
    os.unlink(wrapper)
else:
    tap.note("this kernel cannot forbid writable code by prctl")
tap.done()
