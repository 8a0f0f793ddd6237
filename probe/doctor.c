/* doctor.c - the checklist over a status: what is right, what is not, one fix each. */
#include "probe_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *sw_check_status_name(sw_check_status s)
{
	static const char *const names[] = {"ok", "warning", "broken", "info"};
	return (unsigned)s < SW_CHECK_COUNT ? names[s] : NULL;
}

/* ---- how programs are installed here ---- */

typedef struct distro {
	const char *id, *command;
} distro;
/* By ID, then by the words of ID_LIKE. */
static const distro distros[] = {
    {"debian", "sudo apt install %s"},
    {"ubuntu", "sudo apt install %s"},
    {"raspbian", "sudo apt install %s"},
    {"linuxmint", "sudo apt install %s"},
    {"fedora", "sudo dnf install %s"},
    {"rhel", "sudo dnf install %s"},
    {"centos", "sudo dnf install %s"},
    {"rocky", "sudo dnf install %s"},
    {"almalinux", "sudo dnf install %s"},
    {"amzn", "sudo dnf install %s"},
    {"arch", "sudo pacman -S %s"},
    {"manjaro", "sudo pacman -S %s"},
    {"opensuse", "sudo zypper install %s"},
    {"opensuse-leap", "sudo zypper install %s"},
    {"opensuse-tumbleweed", "sudo zypper install %s"},
    {"sles", "sudo zypper install %s"},
    {"suse", "sudo zypper install %s"},
    {"alpine", "sudo apk add %s"},
    {"void", "sudo xbps-install -S %s"},
    {"gentoo", "sudo emerge sys-apps/%s"},
    {"nixos", "nix-shell -p %s   (permanent: environment.systemPackages)"},
    {"wolfi", "sudo apk add %s"},
    {"azurelinux", "sudo tdnf install %s"},
};

static const char *command_for(const char *id, size_t n)
{
	for (size_t i = 0; i < sizeof(distros) / sizeof(*distros); i++)
		if (strlen(distros[i].id) == n && !strncmp(distros[i].id, id, n))
			return distros[i].command;
	return NULL;
}

void sw_install_command(const char *os_release, const char *program, char *out, size_t n)
{
	char id[64], like[128];
	pr_os_release(os_release, id, sizeof(id), like, sizeof(like));
	const char *command = id[0] ? command_for(id, strlen(id)) : NULL;
	for (const char *p = like; !command && *p;) {
		size_t len = strcspn(p, " ");
		command = command_for(p, len);
		p += len + (p[len] == ' ');
	}
	const char *at = command ? strstr(command, "%s") : NULL;
	if (at)
		snprintf(out, n, "%.*s%s%s", (int)(at - command), command, program, at + 2);
	else
		snprintf(out, n, "install the package %s with this system's package manager%s%s",
		         program, id[0] ? "; its /etc/os-release says " : "", id);
}

/* ---- checks ---- */

typedef struct list {
	sw_check *v;
	size_t n;
	sw_check dropped; /* what finds no room; there is room */
} list;

static sw_check *check(list *l, const char *id, sw_check_status status, const char *fmt, ...)
    SW_PRINTF(4, 5);
static sw_check *check(list *l, const char *id, sw_check_status status, const char *fmt, ...)
{
	sw_check *c = l->n < SW_CHECKS_MAX ? &l->v[l->n++] : &l->dropped;
	va_list ap;
	*c = (sw_check){.status = status};
	snprintf(c->id, sizeof(c->id), "%s", id);
	va_start(ap, fmt);
	vsnprintf(c->message, sizeof(c->message), fmt, ap);
	va_end(ap);
	return c;
}

static void fix(sw_check *c, const char *fmt, ...) SW_PRINTF(2, 3);
static void fix(sw_check *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(c->fix, sizeof(c->fix), fmt, ap);
	va_end(ap);
	c->fix[strcspn(c->fix, "\n")] = '\0'; /* one line each */
}

static const char *fact(const sw_status *s, const char *id)
{
	for (size_t i = 0; i < s->n_facts; i++)
		if (!strcmp(s->facts[i].id, id) && s->facts[i].known)
			return s->facts[i].value;
	return NULL;
}

static bool usable(const sw_backend_status *b)
{
	return b->result == SW_PROBE_FULL || b->result == SW_PROBE_PARTIAL;
}

static void check_environment(const sw_status *s, list *l)
{
	if (s->disabled_via_env)
		fix(check(l, "env.sandbox-enabled", SW_CHECK_BROKEN,
		          "the sandbox is switched off by %s", s->disabled_by),
		    "unset SANDWITNESS_SANDBOX METNOS_SANDBOX");
	else
		check(l, "env.sandbox-enabled", SW_CHECK_OK,
		      "the environment does not switch the sandbox off");
	bool any = false;
	for (size_t i = 0; i < s->n_backends; i++) {
		const sw_backend_status *b = &s->backends[i];
		if (!b->untrusted_path)
			continue;
		char id[48];
		any = true;
		snprintf(id, sizeof(id), "path.trusted.%s", b->id);
		fix(check(l, id, SW_CHECK_WARNING, "%.120s is skipped: %.160s", b->untrusted_path,
		          b->untrusted_why),
		    "take that folder off PATH, or make it and the folders above it writable by "
		    "root only");
	}
	if (!any)
		check(l, "path.trusted", SW_CHECK_OK,
		      "no runner on PATH lies where others can write");
}

static void check_kernel(const sw_status *s, list *l)
{
	const char *max = fact(s, "max_user_namespaces");
	if (max && !strcmp(max, "0"))
		fix(check(l, "kernel.user-namespaces", SW_CHECK_WARNING,
		          "user namespaces are switched off (max_user_namespaces is 0)"),
		    "sudo sysctl -w user.max_user_namespaces=15000");
	else if (max)
		check(l, "kernel.user-namespaces", SW_CHECK_OK, "up to %s user namespaces", max);
	else
		check(l, "kernel.user-namespaces", SW_CHECK_INFO,
		      "whether user namespaces are allowed could not be read");
	const char *clone = fact(s, "unprivileged_userns_clone");
	if (clone && !strcmp(clone, "0"))
		fix(check(l, "kernel.userns-clone", SW_CHECK_WARNING,
		          "only root may make user namespaces (unprivileged_userns_clone is 0)"),
		    "sudo sysctl -w kernel.unprivileged_userns_clone=1");
	const char *apparmor = fact(s, "apparmor_restrict_unprivileged_userns");
	const sw_backend_status *bwrap = sw_status_backend(s, "bwrap");
	if (apparmor && strcmp(apparmor, "0") != 0)
		fix(check(l, "kernel.apparmor-userns",
		          usable(bwrap) ? SW_CHECK_INFO : SW_CHECK_WARNING,
		          "AppArmor restricts user namespaces of unprivileged programs"),
		    "install an AppArmor profile with \"userns,\" for %s",
		    bwrap->path ? bwrap->path : "/usr/bin/bwrap");
	const char *abi = fact(s, "landlock_abi");
	int n = abi ? atoi(abi) : 0;
	if (n >= 3)
		check(l, "kernel.landlock", SW_CHECK_OK, "Landlock ABI %d", n);
	else
		fix(check(l, "kernel.landlock", SW_CHECK_INFO,
		          n ? "Landlock ABI %d is too old to confine truncation"
		            : "Landlock is not available",
		          n),
		    "a kernel of 6.2 or later with landlock in its list of security modules "
		    "(lsm=)");
	if (strcmp(s->context.container, "none") != 0)
		check(l, "host.container", SW_CHECK_INFO,
		      "this runs inside a container (%s): runners may have less rights than on the "
		      "host",
		      s->context.container);
}

static void check_backend(const sw_backend_status *b, list *l, bool needed)
{
	char id[48], names[SW_GUARANTEES_TEXT_MAX];
	snprintf(id, sizeof(id), "backend.%s", b->id);
	sw_guarantees_text(b->guarantees, names);
	if (!b->found && b->result == SW_PROBE_NOT_PROBED)
		return; /* told together below */
	sw_check *c = NULL;
	switch (b->result) {
	case SW_PROBE_FULL:
		check(l, id, SW_CHECK_OK, "%s works: proved %s", b->id, names);
		return;
	case SW_PROBE_PARTIAL:
		c = check(l, id, SW_CHECK_WARNING, "%s works in part: proved %s", b->id, names);
		break;
	case SW_PROBE_UNKNOWN:
		c = check(l, id, needed ? SW_CHECK_WARNING : SW_CHECK_INFO,
		          "%s: the probe came to no result (%s)", b->id, b->cause);
		break;
	case SW_PROBE_NOT_PROBED:
		check(l, id, SW_CHECK_INFO, "%s was found, not probed", b->id);
		return;
	default:
		c = check(l, id, needed ? SW_CHECK_WARNING : SW_CHECK_INFO,
		          "%s is not usable: %s%s%.200s", b->id, b->cause, b->line[0] ? ": " : "",
		          b->line);
		break;
	}
	if (b->advice[0])
		fix(c, "%s", b->advice);
}

/* One line that decides: is there anything that confines? */
static void check_any(const sw_status *s, const char *os_release, list *l)
{
	const sw_backend_status *best = NULL;
	bool found = false;
	for (size_t i = 0; i < s->n_backends; i++) {
		const sw_backend_status *b = &s->backends[i];
		found |= b->found;
		if (usable(b) &&
		    (!best || (b->result == SW_PROBE_FULL && best->result != SW_PROBE_FULL)))
			best = b;
	}
	char install[200];
	sw_install_command(os_release, "bubblewrap", install, sizeof(install));
	if (!sw_status_backend(s, "bwrap")->found && sw_status_backend(s, "bwrap")->here)
		fix(check(l, "backend.bwrap", best ? SW_CHECK_WARNING : SW_CHECK_BROKEN,
		          "bubblewrap (bwrap) is not installed"),
		    "%s", install);
	if (best) {
		check(l, "sandbox.usable", SW_CHECK_OK, "%s can confine commands here, now",
		      best->id);
		return;
	}
	sw_check *c =
	    check(l, "sandbox.usable", SW_CHECK_BROKEN, "nothing here can confine a command%s",
	          found ? ": what was found does not work" : ": no sandbox runner is installed");
	const sw_backend_status *bwrap = sw_status_backend(s, "bwrap");
	if (bwrap->found && bwrap->advice[0])
		fix(c, "%s", bwrap->advice);
	else
		fix(c, "%s", install);
}

size_t sw_doctor(const sw_status *s, const char *os_release, sw_check out[SW_CHECKS_MAX])
{
	list l = {.v = out};
	bool works = false;
	for (size_t i = 0; i < s->n_backends; i++)
		works |= usable(&s->backends[i]);
	check_environment(s, &l);
	check_kernel(s, &l);
	for (size_t i = 0; i < s->n_backends; i++)
		check_backend(&s->backends[i], &l, !strcmp(s->backends[i].id, "bwrap") || !works);
	check_any(s, os_release, &l);
	return l.n;
}
