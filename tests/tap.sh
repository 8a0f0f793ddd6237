# tap.sh - what the shell tests share; source it. Every script ends with `done_testing`.
# SANDWITNESS, SW_SOURCE_DIR and SW_BUILD_DIR come from ctest; run by hand they are guessed.
: "${SW_SOURCE_DIR:=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}"
: "${SW_BUILD_DIR:=$SW_SOURCE_DIR/build}"
: "${SANDWITNESS:=$SW_BUILD_DIR/sandwitness}"
export SW_SOURCE_DIR SW_BUILD_DIR SANDWITNESS
tap_count=0
tap_failed=0
tap_dir=$(mktemp -d)
trap 'rm -rf "$tap_dir"' EXIT
# A state and configuration folder of its own: a test never touches the user's.
export XDG_STATE_HOME=$tap_dir/state XDG_CONFIG_HOME=$tap_dir/config XDG_RUNTIME_DIR=$tap_dir/run
mkdir -p "$XDG_STATE_HOME" "$XDG_CONFIG_HOME"
mkdir -m 700 -p "$XDG_RUNTIME_DIR"

pass() { tap_count=$((tap_count + 1)); printf 'ok %d - %s\n' "$tap_count" "$1"; }
fail() { # NAME [DETAIL...]
	tap_count=$((tap_count + 1))
	tap_failed=$((tap_failed + 1))
	printf 'not ok %d - %s\n' "$tap_count" "$1"
	shift
	[ $# -eq 0 ] || printf '%s\n' "$@" | sed 's/^/#   /'
}
skip() { tap_count=$((tap_count + 1)); printf 'ok %d - %s # SKIP %s\n' "$tap_count" "$1" "$2"; }
skip_all() { printf '1..0 # SKIP %s\n' "$1"; exit 77; }
is() { # NAME GOT WANTED
	if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got:    $2" "wanted: $3"; fi
}
isnt() { # NAME GOT UNWANTED
	if [ "$2" != "$3" ]; then pass "$1"; else fail "$1" "got: $2"; fi
}
like() { # NAME TEXT EXTENDED-REGEX
	if printf '%s' "$2" | grep -Eq -- "$3"; then pass "$1"; else fail "$1" "text:  $2" "regex: $3"; fi
}
unlike() { # NAME TEXT EXTENDED-REGEX
	if printf '%s' "$2" | grep -Eq -- "$3"; then fail "$1" "text:  $2" "regex: $3"; else pass "$1"; fi
}
# succeeds NAME COMMAND..., fails_with NAME STATUS COMMAND...: stdout in $tap_dir/out, stderr in $tap_dir/err.
tap_run() { "$@" >"$tap_dir/out" 2>"$tap_dir/err"; }
succeeds() {
	local name=$1
	shift
	tap_run "$@"
	local status=$?
	if [ $status -eq 0 ]; then pass "$name"; else
		fail "$name" "status $status" "$(head -c 2000 "$tap_dir/err")"
	fi
}
fails_with() {
	local name=$1 wanted=$2
	shift 2
	tap_run "$@"
	local status=$?
	if [ $status -eq "$wanted" ]; then pass "$name"; else
		fail "$name" "status $status, wanted $wanted" "$(head -c 2000 "$tap_dir/err")"
	fi
}
out() { cat "$tap_dir/out"; }
err() { cat "$tap_dir/err"; }
# The script again as a plain user (root only), with the program where that user can execute it and
# $tap_dir/home to write to: as_plain_user SCRIPT NAME=VALUE...
as_plain_user() {
	local script=$1
	shift
	chmod 755 "$tap_dir"
	mkdir -p "$tap_dir/t/part" "$tap_dir/bin" "$tap_dir/home"
	cp "$script" "$tap_dir/t/part/"
	cp "$SW_SOURCE_DIR/tests/tap.sh" "$tap_dir/t/"
	cp "$SANDWITNESS" "$tap_dir/bin/sandwitness"
	chmod -R a+rX "$tap_dir/t" "$tap_dir/bin"
	chown 65534:65534 "$tap_dir/home"
	env -i ASAN_OPTIONS="${ASAN_OPTIONS:-}" ASAN_BUILD="${ASAN_BUILD:-}" HOME=/nonexistent TMPDIR="$tap_dir/home" \
		PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin SW_SOURCE_DIR="$tap_dir" SW_BUILD_DIR="$tap_dir" \
		SANDWITNESS="$tap_dir/bin/sandwitness" "$@" \
		setpriv --reuid=65534 --regid=65534 --clear-groups bash "$tap_dir/t/part/$(basename "$script")"
}
# The tests of another script's output as this one's: take_tap FILE. It must have come to its end.
take_tap() {
	local line
	while IFS= read -r line; do
		case $line in
		"ok "*" # SKIP "*) line=${line#*- } && skip "${line%% # SKIP *}" "${line#* # SKIP }" ;;
		"ok "*) pass "${line#*- }" ;;
		"not ok "*) fail "${line#*- }" ;;
		"#"*) printf '%s\n' "$line" ;;
		esac
	done <"$1"
	like "the other user's part ran to its end" "$(tail -n 1 "$1")" '^1\.\.[1-9][0-9]*$'
}
done_testing() {
	printf '1..%d\n' "$tap_count"
	[ "$tap_failed" -eq 0 ]
	exit
}
