#!/usr/bin/env bash
# scripts/quickstart shows the four verdicts, right, as whoever runs this.
. "$(dirname "$0")/../tap.sh"
bwrap --ro-bind / / --unshare-all true 2>/dev/null || skip_all "bwrap cannot build a sandbox here"
export QUICKSTART_DIR=$tap_dir/quickstart
cd / || exit 1
succeeds "quickstart ends well" "$SW_SOURCE_DIR/scripts/quickstart"
screen=$(out)
part() { sed -n "/^--- $1/,/^--- /p" <<<"$screen"; }
like "the first one works" "$(part 'a command that works')" '^sandwitness: ok: '
like "its output is passed on" "$(part 'a command that works')" '^hello from inside the sandbox'
denied=$(part 'a write that the sandbox refuses')
like "the refused write is a denial" "$denied" '^sandwitness: sandbox_denied: '
like "with its line" "$denied" "line 1: touch: cannot touch '/etc/sandwitness-was-here': Read-only file system"
like "with its cause" "$denied" 'cause: write-outside-workspace'
like "with advice" "$denied" 'advice: '
failed=$(part 'a sandbox that cannot be built')
like "the missing bind source is the runner's failure" "$failed" '^sandwitness: runner_failed: .*never ran'
like "with its line" "$failed" "line 1: bwrap: Can't find source path /no/such/folder"
like "with its cause" "$failed" 'cause: mount-source-missing'
like "attested" "$failed" 'attested'
like "the failing command failed by itself" "$(part 'a command that fails by itself')" '^sandwitness: ok: the command failed by itself'
like "the report counts them" "$screen" '^invocations +4$'
like "the downgrade is reported" "$(sed -n '/report downgrades/,$p' <<<"$screen")" 'network'
like "the dashboard is named" "$screen" 'serve --listen'
done_testing
