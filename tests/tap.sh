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
done_testing() {
	printf '1..%d\n' "$tap_count"
	[ "$tap_failed" -eq 0 ]
	exit
}
