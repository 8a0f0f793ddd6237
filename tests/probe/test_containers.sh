#!/bin/bash
# docker and podman in four named steps: client, daemon or service, image, marker. With
# clients that play a part, and with a real podman where one works here.
. "$(dirname "$0")/../tap.sh"

command -v python3 >/dev/null || skip_all "python3 is missing"
sw=$SANDWITNESS
chmod 755 "$tap_dir"

get() {
	python3 -c '
import json, sys
b = {x["id"]: x for x in json.loads(sys.argv[1])["backends"]}[sys.argv[2]]
p = b["probe"]
steps = [x["name"] + ":" + x["result"] for x in p["steps"]]
v = eval(sys.argv[3])
print(v if isinstance(v, str) else json.dumps(v))' "$1" "$2" "$3"
}
# client NAME: a client whose answers stand in the files version, image, run of its folder
client() {
	local dir
	dir=$(mktemp -d "$tap_dir/client.XXXX")
	cat >"$dir/$1" <<'CLIENT'
#!/bin/sh
here=$(dirname "$0")
case $1 in
version | info) part=version ;;
image) part=image ;;
run) part=run ;;
rm) echo "$*" >>"$here/removed"; exit 0 ;;
esac
. "$here/$part"
CLIENT
	echo 'echo 27.0.1 rootless=false' >"$dir/version"
	echo 'echo sha256:00' >"$dir/image"
	echo 'exit 1' >"$dir/run"
	chmod 755 "$dir" "$dir/$1"
	echo "$dir"
}
probe() { PATH=$2:$PATH "$sw" status --json --deadline "${3:-5s}" --probe="$1"; }

c=$(client docker)
echo 'echo "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?" >&2; exit 1' >"$c/version"
j=$(probe docker "$c")
is "the daemon is down" "$(get "$j" docker 'steps')" '["client:ok", "daemon:failed", "image:skipped", "marker:skipped"]'
is "is not usable, by its cause" "$(get "$j" docker '[p["result"], p["cause"]]')" '["unusable", "daemon-not-running"]'
down=$(get "$j" docker 'p["cause"]')

echo 'echo "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get \"http://%2Fvar%2Frun%2Fdocker.sock/v1.24/version\": dial unix /var/run/docker.sock: connect: permission denied" >&2; exit 1' >"$c/version"
j=$(probe docker "$c")
is "no permission for the socket fails the same step" "$(get "$j" docker 'steps[1]')" daemon:failed
isnt "with another cause" "$(get "$j" docker 'p["cause"]')" "$down"
like "which says so" "$(get "$j" docker 'p["cause"]')" 'permission|denied|socket'

c=$(client docker)
echo 'echo "Error response from daemon: No such image: debian:stable-slim" >&2; exit 1' >"$c/image"
j=$(probe docker "$c")
is "no image" "$(get "$j" docker 'steps')" '["client:ok", "daemon:ok", "image:failed", "marker:skipped"]'
is "its cause" "$(get "$j" docker '[p["result"], p["cause"]]')" '["unusable", "image-missing"]'
is "the version comes from the daemon" "$(get "$j" docker 'b["version"]')" 27.0.1

c=$(client docker)
echo 'exit 0' >"$c/run"
j=$(probe docker "$c")
is "a container that exits 0 without the marker" "$(get "$j" docker '[steps[3], p["result"], p["cause"]]')" '["marker:failed", "unusable", "probe-no-command"]'
# shellcheck disable=SC2016
echo 'while [ "$1" != --entrypoint ]; do shift; done; shift 3; exec "$@"' >"$c/run"
j=$(probe docker "$c")
is "a client that runs the command right here" "$(get "$j" docker '[p["result"], p["cause"], b["guarantees"]]')" '["unusable", "probe-not-confined", []]'
echo 'echo "docker: Error response from daemon: failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: error setting cgroup config for procHooks process: openat2 /sys/fs/cgroup/x: no such file or directory: unknown." >&2; exit 125' >"$c/run"
j=$(probe docker "$c")
is "a daemon that cannot create" "$(get "$j" docker '[steps[3], p["result"]]')" '["marker:failed", "unusable"]'
isnt "has a cause" "$(get "$j" docker 'p["cause"]')" null

echo 'exec sleep 30' >"$c/run"
j=$(probe docker "$c" 300ms)
is "one that hangs: unknown" "$(get "$j" docker '[p["result"], p["cause"]]')" '["unknown", "probe-timeout"]'
like "and its container is removed" "$(cat "$c/removed")" '^rm --force sandwitness-probe-'
echo 'exec sleep 30' >"$c/version"
j=$(probe docker "$c" 300ms)
is "a daemon that does not answer: unknown" "$(get "$j" docker '[steps[1], p["result"]]')" '["daemon:unknown", "unknown"]'

c=$(client podman)
echo 'echo "Error: inspecting object: debian:stable-slim: image not known" >&2; exit 125' >"$c/image"
j=$(probe podman "$c")
is "podman's second step is its service" "$(get "$j" podman 'steps')" '["client:ok", "service:ok", "image:failed", "marker:skipped"]'
unlike "nothing is ever pulled" "$(PATH=$c:$PATH "$sw" confine --backend podman --sandbox read_only --workspace /tmp -- x)" '--pull (always|missing)'

# ---- a real one ----
real() {
	local s=$tap_dir/podman
	command -v podman >/dev/null && command -v busybox >/dev/null || return 1
	mkdir -p "$s/root/bin" "$s/root/tmp"
	cp "$(command -v busybox)" "$s/root/bin/busybox" && ln -s busybox "$s/root/bin/sh"
	ldd "$s/root/bin/busybox" 2>/dev/null | grep -o '/[^ ]*' | while read -r lib; do
		mkdir -p "$s/root$(dirname "$lib")" && cp -L "$lib" "$s/root$lib"
	done
	printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/store"\nrootless_storage_path = "%s/store"\nrunroot = "%s/run"\n' "$s" "$s" "$s" >"$s/storage.conf"
	printf '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n[containers]\ndefault_ulimits = ["nofile=1000:1000", "nproc=1000:1000"]\n' >"$s/containers.conf"
	export CONTAINERS_STORAGE_CONF=$s/storage.conf CONTAINERS_CONF=$s/containers.conf
	tar -C "$s/root" -cf "$s/image.tar" . && timeout 60 podman import "$s/image.tar" localhost/sandwitness-test >/dev/null 2>&1 &&
		# with kept ids runc passes the folders above the image as another user than their owner
		chmod a+x "$s/store" "$s/store/vfs" "$s/store/vfs/dir" &&
		timeout 60 podman run --rm --pull never --network none localhost/sandwitness-test /bin/sh -c : >/dev/null 2>&1
}
if real; then
	j=$("$sw" status --json --probe=podman --image localhost/sandwitness-test --deadline 60s)
	is "a real podman is proved in full" "$(get "$j" podman 'p["result"]')" full
	is "with what a container holds" "$(get "$j" podman 'b["guarantees"]')" \
		'["fs_write", "fs_read", "network", "pid", "ipc", "env", "syscalls", "resources", "tree_kill"]'
	is "and leaves no container" "$(podman ps -aq 2>/dev/null | wc -l)" 0
	ws=$(mktemp -d /var/tmp/sandwitness-test.XXXXXX)
	line=$("$sw" confine --backend podman --image localhost/sandwitness-test --sandbox workspace_write --workspace "$ws" -- \
		/bin/sh -c 'echo made >file; echo x >/escaped')
	out=$(timeout 60 bash -c "$line" 2>&1)
	is "a confined command writes the workspace" "$(cat "$ws/file" 2>&1)" made
	like "and nothing else" "$out" '[Rr]ead-only file system'
	rm -rf "$ws"
	podman rmi -f localhost/sandwitness-test >/dev/null 2>&1
else
	skip "a real podman" "it does not run a container here"
fi
chmod -R u+rwX "$tap_dir/podman" 2>/dev/null
done_testing
