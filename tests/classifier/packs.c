/* packs.c - the packs of packs.h. */
#include "packs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LITERALS(...)                                   \
	.literals = (const char *const[]){__VA_ARGS__}, \
	.n_literals = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)
#define ONLY(...)                                    \
	.only_exit = (const int64_t[]){__VA_ARGS__}, \
	.n_only_exit = sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
#define EXCEPT(...)                                    \
	.except_exit = (const int64_t[]){__VA_ARGS__}, \
	.n_except_exit = sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
#define LIST(...)             \
	(const char *const[]) \
	{                     \
		__VA_ARGS__   \
	}
#define COUNT(a) (uint16_t)(sizeof(a) / sizeof((a)[0]))
#define FATAL .kind = SW_KIND_FATAL, .position = -1
#define SURE .confidence = SW_CONFIDENCE_CERTAIN
#define DENIAL .kind = SW_KIND_DENIAL, .position = -1
#define OTHER(k) .kind = SW_KIND_##k, .position = -1

static const sw_sig_def box_sigs[] = {
    {.id = "box.notice.exact",
     OTHER(INFORMATIONAL),
     .full_line = true,
     LITERALS("box: entering the box")},
    {.id = "box.notice.pid", OTHER(INFORMATIONAL), .regex = "box: pid \\d+"},
    {.id = "box.userns",
     FATAL,
     SURE,
     LITERALS("box: uid map"),
     .cause = "userns",
     .stage = SW_STAGE_SETUP,
     ONLY(1, 9)},
    {.id = "box.exec",
     FATAL,
     SURE,
     LITERALS("box: execvp"),
     .regex = "box: execvp (?<path>/\\S+): ",
     .cause = "exec",
     .stage = SW_STAGE_EXEC},
    {.id = "box.summary",
     FATAL,
     SURE,
     LITERALS("box: child died"),
     .cause = "summary",
     .generic = true,
     .stage = SW_STAGE_SETUP},
    {.id = "box.lost",
     FATAL,
     SURE,
     LITERALS("box: connection lost"),
     .cause = "lost",
     .stage = SW_STAGE_LOST},
    {.id = "box.apply",
     FATAL,
     SURE,
     LITERALS("box: apply: "),
     .cause = "apply",
     .stage = SW_STAGE_SETUP},
    {.id = "box.not125",
     FATAL,
     SURE,
     LITERALS("box: odd end"),
     .cause = "odd",
     .stage = SW_STAGE_SETUP,
     EXCEPT(125)},
    {.id = "box.bare",
     FATAL,
     SURE,
     LITERALS("cannot start container"),
     .cause = "bare",
     .stage = SW_STAGE_EXEC},
    {.id = "box.exit-only", FATAL, SURE, .cause = "reserved", .stage = SW_STAGE_EXEC, ONLY(217)},
    {.id = "box.unknown",
     FATAL,
     LITERALS("box: "),
     .cause = "unknown",
     .stage = SW_STAGE_SETUP,
     .confidence = SW_CONFIDENCE_LIKELY},
    {.id = "box.apply-denied",
     DENIAL,
     LITERALS("apply: Operation not permitted"),
     .scope = SW_SCOPE_ANY,
     .cause = "escape",
     .operation = SW_OPERATION_PRIVILEGE,
     .confidence = SW_CONFIDENCE_CERTAIN},
    {.id = "box.less",
     OTHER(DOWNGRADE),
     LITERALS("box: warning: no seccomp"),
     .lowers = 1u << SW_GUARANTEE_SYSCALLS},
    {.id = "box.nested",
     OTHER(DOWNGRADE),
     LITERALS("without isolation"),
     .regex = "\\w{1,40} runs without isolation",
     .lowers = 1u << SW_GUARANTEE_FS_WRITE | 1u << SW_GUARANTEE_PID},
};

static const sw_sig_def common_sigs[] = {
    {.id = "common.missing",
     FATAL,
     SURE,
     LITERALS("{runner}: command not found"),
     .regex = "(?:\\w+: )?(?:line \\d+: )?{runner}: command not found",
     .cause = "runner-missing",
     .stage = SW_STAGE_SETUP,
     ONLY(127)},
    {.id = "common.write.erofs",
     DENIAL,
     LITERALS("Read-only file system"),
     .regex = "'(?<path>/[^']*)': Read-only file system",
     .operation = SW_OPERATION_WRITE,
     .cause = "write",
     .confidence = SW_CONFIDENCE_CERTAIN},
    {.id = "common.write.erofs-bare",
     DENIAL,
     LITERALS("Read-only file system", "EROFS"),
     .operation = SW_OPERATION_WRITE,
     .cause = "write",
     .confidence = SW_CONFIDENCE_LIKELY},
    {.id = "common.net",
     DENIAL,
     LITERALS("Network is unreachable", "Could not resolve"),
     .regex = "(?:unreachable|host: (?<host>[\\w.]{1,80}))",
     .decides = SW_DECIDES_NETWORK,
     .operation = SW_OPERATION_NETWORK,
     .cause = "net",
     .confidence = SW_CONFIDENCE_LIKELY},
    {.id = "common.call",
     DENIAL,
     LITERALS("not permitted"),
     .regex = "(?<syscall>[a-z]{1,16})\\(\\): operation not permitted",
     .operation = SW_OPERATION_PRIVILEGE,
     .cause = "call",
     .confidence = SW_CONFIDENCE_LIKELY,
     EXCEPT(77)},
    {.id = "common.eacces.outside",
     DENIAL,
     LITERALS("Permission denied"),
     .regex = "(?<path>[^ :']{1,100})'?: Permission denied",
     .decides = SW_DECIDES_WITH,
     .with = 1u << SW_FACT_OUTSIDE_WRITABLE_ROOTS | 1u << SW_FACT_ACCESSIBLE_OUTSIDE,
     .operation = SW_OPERATION_WRITE,
     .cause = "outside",
     .confidence = SW_CONFIDENCE_LIKELY},
    {.id = "common.eacces",
     DENIAL,
     LITERALS("Permission denied"),
     .decides = SW_DECIDES_NO,
     .operation = SW_OPERATION_WRITE,
     .cause = "eacces",
     .confidence = SW_CONFIDENCE_WEAK},
    {.id = "common.kill9",
     DENIAL,
     LITERALS("write refused by policy"),
     .cause = "gated",
     ONLY(1, 137),
     .confidence = SW_CONFIDENCE_CERTAIN,
     .operation = SW_OPERATION_WRITE},
    {.id = "common.ro-mode",
     DENIAL,
     LITERALS("mode forbids"),
     .decides = SW_DECIDES_WITH,
     .with = 1u << SW_FACT_READ_ONLY,
     .cause = "mode",
     .confidence = SW_CONFIDENCE_WEAK,
     .operation = SW_OPERATION_WRITE},
    {.id = "common.sigsys",
     DENIAL,
     .cause = "seccomp",
     ONLY(159),
     .operation = SW_OPERATION_PROCESS,
     .confidence = SW_CONFIDENCE_CERTAIN},
    {.id = "common.veto.publickey",
     OTHER(VETO),
     LITERALS("publickey"),
     .regex = "denied \\(publickey"},
    {.id = "common.veto.table", OTHER(VETO), LITERALS("of table")},
    {.id = "common.limit.memory",
     OTHER(LIMIT),
     LITERALS("Out of memory"),
     .limit = SW_LIMIT_MEMORY,
     .certainty = SW_CERTAINTY_LIKELY,
     .cause = "memory"},
    {.id = "common.limit.disk",
     OTHER(LIMIT),
     LITERALS("No space left"),
     .limit = SW_LIMIT_DISK,
     .certainty = SW_CERTAINTY_LIKELY,
     .cause = "disk"},
    {.id = "common.limit.137",
     OTHER(LIMIT),
     .limit = SW_LIMIT_MEMORY,
     .certainty = SW_CERTAINTY_POSSIBLE,
     .cause = "memory",
     ONLY(137)},
    {.id = "common.limit.xfsz",
     OTHER(LIMIT),
     .limit = SW_LIMIT_FILE_SIZE,
     .certainty = SW_CERTAINTY_PROVEN,
     .cause = "file-size",
     ONLY(153)},
};

static const sw_sig_def jail_sigs[] = {
    {.id = "jail.setup",
     FATAL,
     SURE,
     LITERALS("jail: setup"),
     .cause = "setup",
     .stage = SW_STAGE_SETUP},
    {.id = "jail.any",
     .kind = SW_KIND_FATAL,
     SURE,
     LITERALS("jail: speaks any time"),
     .cause = "any",
     .position = SW_POSITION_ANYWHERE,
     .stage = SW_STAGE_SETUP},
    {.id = "jail.notice", OTHER(INFORMATIONAL), .full_line = true, LITERALS("jail notice")},
};
static const sw_sig_def head_sigs[] = {{.id = "head.setup",
                                        FATAL,
                                        SURE,
                                        LITERALS("head: setup"),
                                        .cause = "setup",
                                        .stage = SW_STAGE_SETUP}};
static const sw_sig_def tail_sigs[] = {{.id = "tail.setup",
                                        FATAL,
                                        SURE,
                                        LITERALS("tail: setup"),
                                        .cause = "setup",
                                        .stage = SW_STAGE_SETUP}};
static const sw_sig_def outer_sigs[] = {
    {.id = "outer.fail",
     FATAL,
     SURE,
     LITERALS("outer: "),
     .cause = "outer",
     .stage = SW_STAGE_SETUP},
};
static const sw_adjust_def outer_adjusts[] = {
    {.id = "common.eacces", .decides = SW_DECIDES_YES, .confidence = SW_CONFIDENCE_LIKELY},
    {.id = "common.limit.*", .decides = -1, .confidence = -1, .disable = true},
};
static const sw_sig_def win_sigs[] = {
    {.id = "win.init", FATAL, SURE, .cause = "dll-init", .stage = SW_STAGE_EXEC, ONLY(0xC0000142)},
    {.id = "win.text", FATAL, SURE, LITERALS("winbox: "), .cause = "text", .stage = SW_STAGE_SETUP},
};

static const sw_pack_def common_def = {
    .backend = "common", .sigs = common_sigs, .n_sigs = COUNT(common_sigs)};
static const sw_pack_def box_def = {.backend = "box",
                                    .title = "Box",
                                    .prefixes = LIST("box: ", "boxhelper: "),
                                    .n_prefixes = 2,
                                    .prefix_regexes = LIST("box\\[\\d+\\]: "),
                                    .n_prefix_regexes = 1,
                                    .priority_prefix = true,
                                    .names = LIST("box", "box.static"),
                                    .n_names = 2,
                                    .sigs = box_sigs,
                                    .n_sigs = COUNT(box_sigs)};
static const sw_pack_def jail_def = {.backend = "jail",
                                     .prefixes = LIST("jail: "),
                                     .n_prefixes = 1,
                                     .names = LIST("jail"),
                                     .n_names = 1,
                                     .fatal_position = SW_POSITION_ALONE,
                                     .sigs = jail_sigs,
                                     .n_sigs = COUNT(jail_sigs)};
static const sw_pack_def head_def = {.backend = "head",
                                     .prefixes = LIST("head: "),
                                     .n_prefixes = 1,
                                     .fatal_position = SW_POSITION_FIRST,
                                     .sigs = head_sigs,
                                     .n_sigs = COUNT(head_sigs)};
static const sw_pack_def tail_def = {.backend = "tail",
                                     .prefixes = LIST("tail: "),
                                     .n_prefixes = 1,
                                     .fatal_position = SW_POSITION_LAST,
                                     .sigs = tail_sigs,
                                     .n_sigs = COUNT(tail_sigs)};
static const sw_pack_def outer_def = {.backend = "outer",
                                      .extends = LIST("box"),
                                      .n_extends = 1,
                                      .names = LIST("outer"),
                                      .n_names = 1,
                                      .prefixes = LIST("outer: "),
                                      .n_prefixes = 1,
                                      .sigs = outer_sigs,
                                      .n_sigs = COUNT(outer_sigs),
                                      .adjusts = outer_adjusts,
                                      .n_adjusts = COUNT(outer_adjusts)};
static const sw_pack_def win_def = {.backend = "win",
                                    .windows = true,
                                    .utf16le = true,
                                    .sigs = win_sigs,
                                    .n_sigs = COUNT(win_sigs)};
static const sw_pack_def free_def = {.backend = "free", .unconfined = true};

const sw_pack_set test_packs = {
    .defs = (const sw_pack_def *const[]){&box_def, &jail_def, &head_def, &tail_def, &outer_def,
                                         &win_def, &free_def, &common_def},
    .n_defs = 8};

const sw_pack *test_pack(const char *backend)
{
	static struct {
		const char *name;
		sw_pack *pack;
	} cache[16];
	sw_error err = {0};
	for (size_t i = 0; i < 16; i++) {
		if (cache[i].name && !strcmp(cache[i].name, backend))
			return cache[i].pack;
		if (cache[i].name)
			continue;
		if (sw_pack_new(&cache[i].pack, &test_packs, backend, &err) != 0) {
			fprintf(stderr, "%s: %s: %s\n", backend, err.where, err.what);
			abort();
		}
		cache[i].name = backend;
		return cache[i].pack;
	}
	abort();
}

sw_result *test_classify(test_input in)
{
	sw_facts facts = {.network = in.network, .mode = in.mode};
	sw_result *r = NULL;
	sw_error err = {0};
	size_t n = in.len ? in.len : strlen(in.text);
	if (sw_classify(test_pack(in.backend), in.facts ? in.facts : &facts, sw_exit_code(in.exit),
	                in.started,
	                in.started == SW_STARTED_UNKNOWN ? SW_SOURCE_NONE : SW_SOURCE_CALLER,
	                in.text, n, &r, &err) != 0) {
		fprintf(stderr, "sw_classify: %s\n", err.what);
		abort();
	}
	return r;
}

const char *test_sig(const sw_result *r)
{
	return r->has_hit && r->hit.sig ? r->hit.sig->id : "-";
}
