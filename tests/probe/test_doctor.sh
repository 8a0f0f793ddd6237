#!/bin/bash
# doctor and preflight: what a newcomer is told, and the gate's exit status.
. "$(dirname "$0")/../tap.sh"

sw=$SANDWITNESS
mkdir -p "$tap_dir/empty"

# ---- a machine without any runner ----
PATH=$tap_dir/empty tap_run "$sw" doctor
status=$?
like "without a runner bubblewrap is what is missing" "$(out)" 'backend\.bwrap +bubblewrap \(bwrap\) is not installed'
isnt "and doctor does not say that all is fine" "$status" 0

install_line() { # OS-RELEASE TEXT
	printf '%b' "$1" >"$tap_dir/os-release"
	PATH=$tap_dir/empty "$sw" doctor --os-release "$tap_dir/os-release" | sed -n 's/^ *fix: //p' | grep -i 'bubblewrap'
}
like "Debian" "$(install_line 'ID=debian\n')" '^sudo apt install bubblewrap$'
like "Ubuntu" "$(install_line 'ID=ubuntu\nID_LIKE=debian\n')" '^sudo apt install bubblewrap$'
like "a derivative by ID_LIKE" "$(install_line 'NAME="Pop!_OS"\nID=pop\nID_LIKE="ubuntu debian"\n')" '^sudo apt install bubblewrap$'
like "Fedora" "$(install_line 'ID=fedora\n')" '^sudo dnf install bubblewrap$'
like "Rocky, quoted" "$(install_line "ID='rocky'\nID_LIKE=\"rhel centos fedora\"\n")" '^sudo dnf install bubblewrap$'
like "Arch" "$(install_line 'ID=arch\n')" '^sudo pacman -S bubblewrap$'
like "openSUSE" "$(install_line 'ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n')" '^sudo zypper install bubblewrap$'
like "Alpine" "$(install_line 'ID=alpine\n')" '^sudo apk add bubblewrap$'
like "another one is named" "$(install_line 'ID=plan9\n')" 'package manager.*plan9'
like "none at all" "$(install_line '')" 'package manager'

# ---- the list ----
tap_run "$sw" doctor --json
like "JSON only on stdout" "$(out)" '^\{"schema":1,"status":"(ok|warnings|broken)","checks":\[.*\]\}$'
is "nothing on stderr" "$(err)" ""
if command -v python3 >/dev/null; then
	is "ids are unique, and each fix is one line" "$(python3 -c '
import json, sys
c = json.load(sys.stdin)["checks"]
ids = [x["id"] for x in c]
print(len(ids) == len(set(ids)) and all("\n" not in (x["fix"] or "") for x in c))' <"$tap_dir/out")" True
	ids=$(python3 -c 'import json, sys; print(" ".join(x["id"] for x in json.load(sys.stdin)["checks"]))' <"$tap_dir/out")
	like "the stable ones are there" "$ids" '^env\.sandbox-enabled path\.trusted.* kernel\.user-namespaces .*kernel\.landlock .*sandbox\.usable$'
fi
SANDWITNESS_SANDBOX=off tap_run "$sw" doctor
is "switched off is broken" "$?" 11
like "and says how to switch it on" "$(out)" 'unset SANDWITNESS_SANDBOX'
evil=$(mktemp -d "$tap_dir/evil.XXXX")
printf '#!/bin/sh\n' >"$evil/bwrap"
chmod 755 "$evil/bwrap"
chmod 777 "$evil"
PATH=$evil:$PATH tap_run "$sw" doctor
like "a PATH that others can write is told" "$(out)" 'path\.trusted\.bwrap +.*is skipped'

# ---- preflight ----
if command -v bwrap >/dev/null && bwrap --ro-bind / / --unshare-user true 2>/dev/null; then
	succeeds "preflight of a bwrap that works" "$sw" preflight --backend bwrap
	tap_run "$sw" preflight --backend bwrap --json
	like "narrows the network because it was proved" "$(out)" '"can_reach_network":false,"reaches_beyond_workspace":false,"private_data":true'
	tap_run "$sw" preflight --backend bwrap --network --readable /usr --json
	like "and not where it is allowed; an extra path reaches beyond" "$(out)" '"can_reach_network":true,"reaches_beyond_workspace":true,"private_data":true'
	succeeds "without a name the best one" "$sw" preflight
else
	skip "preflight of bwrap" "bwrap does not work here"
fi
tap_run "$sw" preflight --backend landlock --json
like "Landlock never narrows the network" "$(out)" '"can_reach_network":true'
PATH=$tap_dir/empty fails_with "a missing one is refused" 11 "$sw" preflight --backend bwrap
like "with the words a runtime can show" "$(err)" 'refusing to run'
like "and what to install" "$(err)" 'fix: .*bubblewrap'
is "and nothing on stdout" "$(out)" ""
SANDWITNESS_SANDBOX=no fails_with "switched off is refused" 11 "$sw" preflight
like "and says by what" "$(err)" 'SANDWITNESS_SANDBOX=no'
bad=$(mktemp -d "$tap_dir/bad.XXXX")
# shellcheck disable=SC2016
printf '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n' >"$bad/bwrap"
chmod 755 "$bad" "$bad/bwrap"
PATH=$bad:$PATH fails_with "one that does not confine is refused" 11 "$sw" preflight --backend bwrap
PATH=$bad:$PATH fails_with "also where a part would do" 11 "$sw" preflight --backend bwrap --require partial
printf '#!/bin/sh\nexec sleep 30\n' >"$bad/bwrap"
PATH=$bad:$PATH fails_with "one that hangs is refused" 11 "$sw" preflight --backend bwrap --deadline 200ms
fails_with "an unknown requirement is a usage error" 1 "$sw" preflight --require most
fails_with "an unknown backend too" 1 "$sw" preflight --backend frob
done_testing
