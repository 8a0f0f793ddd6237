# run --trace: what fails outside the sandbox just the same is no denial, whoever makes it fail; what
# only the sandbox refuses stays one. As root, and then as a plain user.
. "$(dirname "$0")/../tap.sh"
script=$(readlink -f "$0")
# The leak checker cannot work in a process that is followed; the unit tests check leaks.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
export PYTHONDONTWRITEBYTECODE=1
as=$(id -un)
ws=$tap_dir/ws
v=$tap_dir/v.json
mkdir -p "$ws"
cd "$ws" || exit 1
bwrap --dev-bind / / true 2>/dev/null || skip_all "bwrap does not work here"

# Runs `$before` in the same mount namespace, then the command. Sets `found` to "ERRNO PATH" of
# each denial (an observation counts as one), `verdict`, `status`, and `ran` from its output.
before=
traced() {
	rm -f "$v"
	if [ -n "$before" ]; then
		unshare -m sh -c "$before"' || exit 77; exec "$@"' sh timeout -s KILL 90 "$SANDWITNESS" run --audit=off --trace --quiet --null-stdin --verdict-file "$v" "$@" >"$tap_dir/out" 2>&1
	else
		timeout -s KILL 90 "$SANDWITNESS" run --audit=off --trace --quiet --null-stdin --verdict-file "$v" "$@" >"$tap_dir/out" 2>&1
	fi
	status=$?
	ran=$(cat "$tap_dir/out")
	{
		read -r verdict
		found=$(cat)
	} < <(python3 - "$v" <<'PY'
import json, os, re, sys
if not os.path.exists(sys.argv[1]):
    sys.exit()
o = json.load(open(sys.argv[1]))
print(o["verdict"], o["evidence"])
for l in [o["line"]] + [b["line"] for b in o["observations"] if b["kind"] == "traced_denial"]:
    m = re.match(r"trace: (?:\w+ )?(.*?): (E[A-Z]+) \(", l or "")
    if m:
        print(m.group(2), m.group(1))
PY
	)
}
cat >"$ws/p.py" <<'PY'
import ctypes, errno, fcntl, mmap, os, platform, resource, signal, socket, stat, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
arm = platform.machine() == "aarch64"
NR = {"fchownat": 54, "bpf": 280} if arm else {"fchownat": 260, "bpf": 321}

def call(rc):
    if rc < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return rc
def fails(f, *args):
    """Says with which error; "done" where there is none."""
    try:
        f(*args)
        print("done")
    except OSError as e:
        print(errno.errorcode[e.errno])
def drop():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
def attr(data):
    return ctypes.create_string_buffer(data, 128)
def bpf(command, data):
    return call(libc.syscall(NR["bpf"], command, attr(data), 128))
def send_with(level, kind, data, to):
    s = socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET, socket.SOCK_DGRAM)
    s.sendmsg([b"x"], [(level, kind, data)], 0, (to, 9))
def twice():
    l = socket.create_server(("127.0.0.1", 0))
    port = 0
    for i in range(2):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", port))
        port = s.getsockname()[1]
        s.connect(l.getsockname())
        globals()["keep%d" % i] = s
def namespaces():
    call(libc.unshare(0x10000000))
    call(libc.unshare(0x10000000))
def meanwhile(prepare, mend):
    """Another process mends what refuses a file as soon as that was met."""
    m = mmap.mmap(-1, 4096)
    m[0] = 255
    paths = [prepare(k) for k in range(120)]
    time.sleep(0.1)
    pid = os.fork()
    last = 255
    while pid == 0:
        k = m[0]
        if k != last:
            t = time.perf_counter_ns() + 3000 * k
            while time.perf_counter_ns() < t:
                pass
            mend(k)
            last = k
    n = 0
    for k, path in enumerate(paths):
        m[0] = k
        try:
            os.close(os.open(path, os.O_RDWR))
        except PermissionError:
            n += 1
    os.kill(pid, 9)
    print("EACCES" if n else "done")
def put(path, mode):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, mode))
    return path
def modes():
    meanwhile(lambda k: put("m%d" % k, 0), lambda k: os.chmod("m%d" % k, 0o666))
def turned(k):
    for name in "a", "b", "c":
        os.mkdir("%s%d" % (name, k))
    put("a%d/f" % k, 0)
    put("b%d/f" % k, 0o666)
    os.symlink("../a%d" % k, "c%d/link" % k)
    os.symlink("c%d/link" % k, "l%d" % k)
    return "l%d/f" % k
def turn(k):
    os.symlink("../b%d" % k, "c%d/new" % k)
    os.rename("c%d/new" % k, "c%d/link" % k)
def starve():
    """Takes the descriptors of whoever supervises this."""
    pid = os.getppid()
    while pid > 1:
        text = open("/proc/%d/stat" % pid).read()
        if "(sandwitness)" in text:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 1024))
            return pid
        pid = int(text.rsplit(")", 1)[1].split()[1])
    sys.exit("no supervisor")
def starved():
    for name in "d", "e":
        open(name, "w")
    call(libc.mount(b"e", b"d", b"", 4096, None))
    pid = starve()
    try:
        os.unlink("d")
    finally:
        time.sleep(0.2)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (1024, 1024))
def silent():
    """Moves a file out of a FUSE mount that answers nobody but this process."""
    me = os.getpid()
    try:
        fd = os.open("/dev/fuse", os.O_RDWR)
        call(libc.mount(b"x", b"fuse", b"fuse", 0, b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fd))
    except OSError:
        sys.exit(77)
    if os.fork() == 0:
        while True:
            ask = os.read(fd, 1 << 20)
            code, unique = struct.unpack_from("=IQ", ask, 4)
            if code == 26: # init
                answer = struct.pack("IIIIHHIII", 7, 31, 4096, 0, 0, 0, 65536, 0, 0).ljust(64, b"\0")
            elif code not in (1, 3) or struct.unpack_from("I", ask, 32)[0] != me:
                continue
            else: # a name, or what it is
                folder = struct.pack("QQQQQQIIIIIIIII", 2, 0, 0, 0, 0, 0, 0, 0, 0, 0o40777, 2, 0, 0, 0, 4096).ljust(88, b"\0")
                answer = (struct.pack("QQQQII", 2, 0, 0, 0, 0, 0) if code == 1 else bytes(16)) + folder
            os.write(fd, struct.pack("IiQ", 16 + len(answer), 0, unique) + answer)
    os.close(fd)
    os.rename("fuse/d/x", "y")
exec(sys.argv[1])
sys.exit(7)
PY
open=(-- bwrap --dev-bind / / --die-with-parent --)
box=("${open[@]}")
innocent() { # NAME ERRNO CODE
	traced "${box[@]}" python3 "$ws/p.py" "$3"
	if [ "$status" -eq 77 ]; then
		skip "$as: no denial: $1" "not to be had here"
	else
		is "$as: no denial: $1" "$ran ${verdict%% *} $found" "$2 ok "
	fi
}
named() { # NAME ERRNO PATH CODE
	traced "${box[@]}" python3 "$ws/p.py" "$4"
	is "$as: a denial: $1" "$ran $verdict $found" "$2 sandbox_denied attested $2 $3"
}

# --- whoever calls
mkdir -p mine/s x
innocent "a folder moved as ." EBUSY "os.chdir('mine'); fails(os.rename, '.', '../else')"
innocent "a folder moved as .." EBUSY "fails(os.rename, 'mine/s/..', 'else')"
innocent "a folder moved to x/." EBUSY "fails(os.rename, 'x', 'x/.')"
traced "${open[@]}" sh -c "cd mine && mv . ../else"
is "$as: what mv says of it is withdrawn" "${verdict%% *} $found" "ok "
touch file
innocent "flags that chown does not know" EINVAL "fails(lambda: call(libc.syscall(NR['fchownat'], -100, b'file', -1, -1, 0x8000)))"
innocent "a user namespace in one without a user" EPERM "fails(namespaces)"
python3 - <<'PY'
import os, shutil
shutil.copy("/bin/true", "loader")
text = open("loader", "rb").read()
for name in b"/lib64/ld-linux-x86-64.so.2", b"/lib/ld-linux-aarch64.so.1":
    text = text.replace(name, b"/etc/passwd".ljust(len(name), b"\0"))
open("loader", "wb").write(text)
PY
innocent "a program whose loader cannot be executed" EACCES "fails(os.execv, './loader', ['x'])"
box=(-- bwrap --dev-bind / / --unshare-net --die-with-parent --)
innocent "a port that is taken" EADDRNOTAVAIL "fails(twice)"
box=("${open[@]}")

if [ "$(id -u)" -eq 0 ]; then
	innocent "the user -1" EINVAL "fails(lambda: call(libc.setuid(-1)))"
	innocent "the group -1 in a list" EINVAL "fails(lambda: call(libc.setgroups(1, ctypes.byref(ctypes.c_uint32(0xffffffff)))))"
	innocent "a namespace, asked for by one who is root no more" EPERM "drop(); fails(lambda: call(libc.unshare(0x40000000)))"
	innocent "a raw socket, of the same" EPERM "drop(); fails(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)"
	if python3 p.py "bpf(0, struct.pack('IIIII', 2, 4, 4, 1, 8))" >/dev/null 2>&1; [ $? -eq 7 ]; then
		innocent "a map that may only be read" EPERM "m = bpf(0, struct.pack('IIIII', 2, 4, 4, 1, 8))
k = ctypes.addressof(ctypes.create_string_buffer(4))
fails(bpf, 2, struct.pack('IxxxxQQQ', m, k, k, 0))"
	fi
	touch fixed
	if chattr +i fixed 2>/dev/null; then
		innocent "a file that cannot be changed, renamed over" EPERM "open('new', 'w'); fails(os.rename, 'new', 'fixed')"
		chattr -i fixed
	fi
	mkdir queue low up work merged low/dir
	before="mount -t mqueue none '$ws/queue' 2>/dev/null"
	innocent "a folder among message queues" EPERM "fails(os.mkdir, 'queue/x')"
	before="mount -t overlay none -o lowerdir='$ws/low',upperdir='$ws/up',workdir='$ws/work' '$ws/merged' 2>/dev/null"
	innocent "a folder of an overlay's lower layer" EXDEV "os.chdir('merged'); fails(os.rename, 'dir', 'dir2')"
	before=
	mkdir -p hides
	touch hides/d
	box=(-- bwrap --dev-bind / / --tmpfs "$ws/hides" --die-with-parent --)
	innocent "a host that cannot be asked for want of descriptors" EBUSY "os.chdir('$ws/hides'); fails(starved)"
	mkdir -p fuse
	box=(--deadline 30s "${open[@]}")
	start=$(date +%s)
	innocent "a file moved out of a file system that never answers" EXDEV "fails(silent)"
	took=$(($(date +%s) - start))
	if [ $took -lt 25 ]; then pass "and it is not waited for"; else fail "and it is not waited for" "$took s"; fi
	box=(-- bwrap --bind / / --dev /dev --cap-drop ALL --die-with-parent --)
	named "an owner, without the capability, of a file just made" EPERM "$ws/own" \
		"open('own', 'w'); fails(os.chown, '$ws/own', 5, 5)"
	named "a device in a folder just made" EPERM "$ws/dev/null" \
		"os.mkdir('dev'); fails(os.mknod, '$ws/dev/null', stat.S_IFCHR | 0o666, os.makedev(1, 3))"
	named "a mount" EPERM mount "fails(lambda: call(libc.mount(b'x', b'/mnt', b'tmpfs', 0, None)))"
	innocent "a mount of a type that the host does not know" EPERM "fails(lambda: call(libc.mount(b'x', b'/mnt', b'nosuchfs', 0, None)))"
	innocent "a host's name that is too long" EPERM "fails(lambda: call(libc.sethostname(b'x' * 90, 90)))"
	box=(-- bwrap --bind / / --dev /dev --unshare-user --uid 0 --gid 0 --cap-add ALL --die-with-parent --)
	named "a user that the namespace does not know" EINVAL setuid "fails(lambda: call(libc.setuid(5)))"
	named "an owner that it does not know" EINVAL "$ws/own2" "open('own2', 'w'); fails(os.chown, '$ws/own2', 5, 5)"
	# the same as a plain user
	as_plain_user "$script" >"$tap_dir/plain"
	take_tap "$tap_dir/plain"
	done_testing
fi

# --- a plain user
innocent "a mark on a message" EPERM "fails(send_with, socket.SOL_SOCKET, socket.SO_MARK, struct.pack('i', 5), '127.0.0.1')"
innocent "an option of the sixth version's on a message" EPERM "fails(send_with, socket.IPPROTO_IPV6, 54, bytes(8), '::1')"
innocent "a mode that another process sets right meanwhile" EACCES "modes()"
innocent "a link behind a link that another process turns meanwhile" EACCES "meanwhile(turned, turn)"
elsewhere=$(mktemp -d /var/tmp/sw-truth.XXXXXX)
echo x >"$elsewhere/file"
box=(--backend landlock --sandbox workspace_write --workspace "$ws" --readable "$elsewhere" --)
named "a link across folders" EXDEV "$elsewhere/file" "fails(os.link, '$elsewhere/file', '$ws/link')"
rm -rf "$elsewhere"
box=(-- unshare -rn)
named "the loopback of a network without addresses" EADDRNOTAVAIL "[::1]:9" "fails(lambda: socket.socket(socket.AF_INET6).connect(('::1', 9)))"
done_testing
