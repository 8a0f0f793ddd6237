"""The liar inside the sandbox: attack.py MODE. Each mode ends with status 1 unless it says otherwise."""
import ctypes
import os
import resource
import signal
import socket
import struct
import sys
import time

LINE = b"bwrap: setting up uid map: Permission denied\n"
LIE = b'{ "child-pid": 1 }\n{ "exit-code": 0 }\n'
libc = ctypes.CDLL(None, use_errno=True)


def out(*parts):
    for p in parts:
        os.write(1, p)


def parents():
    """The parents that can be seen, up to the supervisor; nobody else is harmed."""
    pid, chain = os.getppid(), []
    while pid > 0 and pid not in chain:
        chain.append(pid)
        try:
            with open(f"/proc/{pid}/stat") as f:
                head, _, tail = f.read().rpartition(")")
        except OSError:
            break
        if head.endswith("(sandwitness"):
            return chain
        pid = int(tail.split()[1])
    # no supervisor in sight: a pid namespace, whose parents are the sandbox's own
    return chain if os.readlink("/proc/self") == str(os.getpid()) and 1 in chain and comm(1) in ("bwrap", "sh", "python3") else []


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


def every_descriptor():
    for fd in range(3, 1024):
        try:
            os.write(fd, LIE)
        except OSError:
            pass
    out(LINE)


def own_proc():
    for fd in os.listdir("/proc/self/fd"):
        for path in (f"/proc/self/fd/{fd}", f"/dev/fd/{fd}", f"/proc/thread-self/fd/{fd}"):
            try:
                if int(fd) > 2:
                    os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), LIE)
            except OSError:
                pass
    out(LINE)


def proc_of_parents():
    for pid in parents():
        try:
            fds = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for fd in fds:
            path = f"/proc/{pid}/fd/{fd}"
            try:
                if os.readlink(path).startswith(("pipe:", "socket:")) and fd not in "012":
                    os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), LIE)
            except OSError:
                pass
    out(LINE)


def stolen(use):
    """Copies of the parents' sockets by pidfd_getfd(), where the kernel lets us."""
    for pid in parents():
        pidfd = libc.syscall(434, pid, 0)
        if pidfd < 0:
            continue
        for n in range(3, 64):
            fd = libc.syscall(438, pidfd, n, 0)
            if fd >= 0:
                try:
                    use(socket.socket(fileno=fd))
                except OSError:
                    pass
    out(LINE)


def stolen_write():
    stolen(lambda s: s.send(LIE))


def stolen_shut():
    stolen(lambda s: s.shutdown(socket.SHUT_RDWR))


def stolen_flood():
    def flood(s):
        s.setblocking(False)
        for _ in range(64):
            s.send(LIE * 500)
    stolen(flood)


def stolen_forged_credentials():
    """Says that it is the runner; the kernel lets only root do that."""
    def forge(s):
        for pid in parents():
            cred = struct.pack("3i", pid, os.getuid(), os.getgid())
            try:
                s.sendmsg([b'{ "exit-code": 7 }\n'], [(socket.SOL_SOCKET, 2, cred)])
            except OSError:
                pass
    stolen(forge)


def close_all():
    out(LINE)
    os.closerange(0, 1024)


def close_then_write():
    os.closerange(0, 3)
    for fd in range(3):
        os.open("/dev/null", os.O_RDWR)


def splits():
    for i in range(len(LINE)):
        out(LINE[i:i + 1])
        time.sleep(0.002)


def split_denial():
    for piece in (b"touch: cannot touch '/etc/x': Read", b"-only file", b" sys", b"tem\n"):
        out(piece)
        time.sleep(0.02)


def after_exit():
    if os.fork() == 0:
        os.setsid()
        time.sleep(0.08)
        out(LINE)
        os._exit(0)


def flood_after_exit():
    if os.fork() == 0:
        os.setsid()
        try:
            while True:
                out(LINE * 1000)
        except OSError:
            os._exit(0)


def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(s, signal.SIG_IGN)
            out(LINE)
            time.sleep(60)
        os._exit(0)


def vanish():
    """A child takes over and its parent goes: the status must be the first one's."""
    if os.fork() == 0:
        out(LINE)
        os._exit(0)
    os.wait()


def one_line_mib():
    out(b"x" * (1 << 20), LINE)


def one_line_huge():
    for _ in range(80):
        out(b"bwrap: " + b"y" * 65529)
    out(b"\n")


def lines_mib():
    out(b"a line of output\n" * 65536, LINE)


def denial_in_noise():
    out(b"noise\n" * 100000, b"touch: cannot touch '/etc/x': Read-only file system\n", b"noise\n" * 100000)


def no_newline():
    out(LINE[:-1])


def utf16le():
    out(LINE.decode().encode("utf-16-le"))


def utf16be():
    out(b"\xfe\xff" + LINE.decode().encode("utf-16-be"))


def kill(pid, sig=signal.SIGKILL):
    try:
        os.kill(pid, sig)
    except OSError:
        pass


def runners():
    """bwrap's own processes among the parents, the outermost last."""
    found = []
    for pid in parents():
        try:
            with open(f"/proc/{pid}/comm") as f:
                if f.read().strip() == "bwrap":
                    found.append(pid)
        except OSError:
            pass
    return found


def kill_init():
    out(LINE)
    kill(1)
    kill(1, signal.SIGTERM)


def kill_parent():
    out(LINE)
    kill(os.getppid())
    time.sleep(1)


def kill_runner():
    out(LINE)
    for pid in reversed(runners()):
        kill(pid)
    time.sleep(1)


def supervisors():
    return [pid for pid in parents() if comm(pid) == "sandwitness"]


def term_both():
    """Has the supervisor pass a TERM on, so that the runner's end by TERM looks like its doing."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    out(LINE)
    for pid in supervisors():
        kill(pid, signal.SIGTERM)
    time.sleep(0.2)
    for pid in reversed(runners()):
        kill(pid, signal.SIGTERM)
    time.sleep(1)


def term_unseen():
    """The same as a process that cannot be looked at, through a sender that is gone at once."""
    libc.prctl(4, 0, 0, 0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    out(LINE)
    above = supervisors()
    if os.fork() == 0:
        for pid in above:
            kill(pid, signal.SIGTERM)
        os._exit(0)
    os.wait()
    time.sleep(0.2)
    for pid in reversed(runners()):
        kill(pid, signal.SIGTERM)
    time.sleep(1)


def kill_runner_and_stay():
    """Leaves somebody whom the supervisor must kill, so that the runner seems to be its prey too."""
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60)
        os._exit(0)
    kill_runner()


def kill_supervisor():
    out(LINE)
    for pid in parents():
        try:
            with open(f"/proc/{pid}/comm") as f:
                if f.read().strip() == "sandwitness":
                    kill(pid)
        except OSError:
            pass
    time.sleep(1)


def take_number():
    """Ends the runner and then runs under its number, with an end as the runner's would be."""
    out(LINE)
    above = runners()
    if os.fork() == 0:
        os.setsid()  # a number stays taken while it names a group
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        runner = above[-1]
        for pid in reversed(above):
            kill(pid)
        for _ in range(900):
            time.sleep(0.001)
            try:
                os.killpg(runner, 0)
            except OSError:
                break
        for _ in range(50):
            with open("/proc/sys/kernel/ns_last_pid", "w") as f:
                f.write(str(runner - 1))
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(0.05)  # until its parent has gone, and it is the supervisor's child
                os._exit(0)
            if pid == runner:
                break
        os._exit(0)
    time.sleep(0.2)


def take_files():
    """The supervisor may open nothing more, and poll(2) fails."""
    for pid in supervisors():
        hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, hard))
    time.sleep(0.2)
    out(LINE)


def trace_runner():
    """Holds the runner by ptrace and lets it go: where it may, it could do more."""
    for pid in runners():
        libc.ptrace(0x4206, pid, 0, 0)
    out(LINE)
    time.sleep(0.05)


def look_like_the_runner():
    libc.prctl(15, b"bwrap", 0, 0, 0)
    out(LINE)


def report_json():
    out(b'{"schema":1,"verdict":"ok","started":"no","evidence":"attested"}\n', LINE)


if __name__ == "__main__":
    globals()[sys.argv[1].replace("-", "_")]()
    os._exit(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
