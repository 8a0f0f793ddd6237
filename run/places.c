/* places.c - see places.h. docs/levels.md says the same in words. */
#include "places.h"

#include <stdio.h>
#include <string.h>

#include "paths.h"

#define OUT SW_GUARANTEES_ISOLATING
#define NET SW_G(NETWORK)
#define IPC SW_G(IPC)
#define READ SW_G(FS_READ)
#define WRITE SW_G(FS_WRITE)

#define SOCKET(path, loses)                                       \
	{                                                         \
		path, SW_PLACE_SOCKET, loses, false, false, false \
	}
#define RARE(path, loses)                                        \
	{                                                        \
		path, SW_PLACE_SOCKET, loses, false, false, true \
	}
#define LATER(path)                                              \
	{                                                        \
		path, SW_PLACE_LATER, WRITE, false, false, false \
	}
#define SECRET(path)                                             \
	{                                                        \
		path, SW_PLACE_SECRET, READ, false, false, false \
	}

const sw_place sw_places[] = {
    /* What is in /run and is not known belongs to some daemon. */
    {"/run", SW_PLACE_SOCKET, OUT, true, false, false},
    SOCKET("/run/docker.sock", OUT),
    SOCKET("/run/docker", OUT),
    SOCKET("/run/containerd", OUT),
    SOCKET("/run/podman", OUT),
    SOCKET("/run/crio", OUT),
    SOCKET("/run/buildkit", OUT),
    SOCKET("/run/k3s", OUT),
    SOCKET("/run/incus", OUT),
    SOCKET("/run/lxd", OUT),
    SOCKET("/run/libvirt", OUT),
    SOCKET("/run/dbus", OUT),
    SOCKET("/run/systemd", OUT),
    SOCKET("/run/user", OUT),
    SOCKET("/run/snapd.socket", OUT),
    SOCKET("/run/udev/control", OUT),
    SOCKET("/run/initctl", OUT),
    SOCKET("/run/supervisor.sock", OUT),
    SOCKET("/run/screen", OUT),
    SOCKET("/run/tmux", OUT),
    SOCKET("/run/postgresql", OUT),
    SOCKET("/run/mysqld", OUT),
    RARE("/nix/var/nix/daemon-socket", OUT),
    RARE("/var/lib/mysql", OUT),
    RARE("/var/spool/postfix", OUT),
    RARE("/var/lib/sss/pipes", NET),
    SOCKET("/run/nscd", NET),
    SOCKET("/run/avahi-daemon", NET),
    SOCKET("/run/netns", NET),
    /* a resolver asks any name server on request */
    SOCKET("/run/systemd/resolve", NET),
    SOCKET("/run/resolvconf", 0),
    SOCKET("/run/NetworkManager/resolv.conf", 0),
    SOCKET("/run/current-system", 0),
    SOCKET("/run/booted-system", 0),
    SOCKET("/run/opengl-driver", 0),
    SOCKET("/run/opengl-driver-32", 0),
    SOCKET("/run/media", 0),
    SOCKET("/run/udev/data", 0),
    SOCKET("/run/utmp", 0),
    SOCKET("/run/secrets", READ),
    SOCKET("/run/shm", IPC),
    SOCKET("/var/lib/lxd", OUT),
    SOCKET("/var/snap/lxd", OUT),
    SOCKET("/var/lib/incus", OUT),
    SOCKET("/var/lib/kubelet", OUT),
    SOCKET("/var/lib/libvirt/qemu", OUT),
    SOCKET("/var/lib/docker", OUT),
    SOCKET("/var/lib/containerd", OUT),
    RARE("/tmp/.X11-unix", OUT), /* types into any window */
    RARE("/tmp/.ICE-unix", OUT),
    /* tmux, screen, agents, editors: names that nobody can list */
    {"/tmp", SW_PLACE_SOCKET, OUT, false, true, true},

    {"/dev/shm", SW_PLACE_SHARED, IPC, false, false, false},
    {"/dev/mqueue", SW_PLACE_SHARED, IPC, false, false, false},

    LATER("/var/spool/cron"),
    LATER("/var/spool/at"),
    LATER("/var/spool/anacron"),
    LATER("/var/spool/incron"),
    LATER("/var/cron"),
    LATER("/var/at"),
    LATER("/var/lib/alternatives"),
    LATER("/var/lib/apt"),
    LATER("/var/lib/containers"),
    LATER("/var/lib/dpkg"),
    LATER("/var/lib/flatpak"),
    LATER("/var/lib/pacman"),
    LATER("/var/lib/polkit-1"),
    LATER("/var/lib/rancher"),
    LATER("/var/lib/rpm"),
    LATER("/var/lib/snapd"),
    LATER("/var/lib/sudo"),
    LATER("/var/lib/systemd"),
    LATER("/var/db/sudo"),

    /* Root: every file of a service, and these of the system. */
    {"/media", SW_PLACE_SECRET, READ, false, true, false},
    {"/mnt", SW_PLACE_SECRET, READ, false, true, false},
    {"/run/media", SW_PLACE_SECRET, READ, false, true, false},
    {"/srv", SW_PLACE_SECRET, READ, false, true, false},
    {"/var/tmp", SW_PLACE_SECRET, READ, false, true, false},
    SECRET("/boot"),
    SECRET("/run/secrets"),
    SECRET("/var/backups"),
    SECRET("/var/cache"),
    SECRET("/var/db"),
    SECRET("/var/lib"),
    SECRET("/var/log"),
    SECRET("/var/mail"),
    SECRET("/var/spool"),
    SECRET("/etc/NetworkManager/system-connections"),
    SECRET("/etc/bind/rndc.key"),
    SECRET("/etc/credstore"),
    SECRET("/etc/credstore.encrypted"),
    SECRET("/etc/docker/key.json"),
    SECRET("/etc/exim4/passwd.client"),
    SECRET("/etc/gshadow"),
    SECRET("/etc/gshadow-"),
    SECRET("/etc/ipsec.d/private"),
    SECRET("/etc/ipsec.secrets"),
    SECRET("/etc/krb5.keytab"),
    SECRET("/etc/kubernetes"),
    SECRET("/etc/letsencrypt"),
    SECRET("/etc/luks"),
    SECRET("/etc/mysql/debian.cnf"),
    SECRET("/etc/netplan"),
    SECRET("/etc/openvpn"),
    SECRET("/etc/pki/tls/private"),
    SECRET("/etc/postfix/sasl_passwd"),
    SECRET("/etc/ppp"),
    SECRET("/etc/rancher"),
    SECRET("/etc/rndc.key"),
    SECRET("/etc/security/opasswd"),
    SECRET("/etc/shadow"),
    SECRET("/etc/shadow-"),
    SECRET("/etc/ssh/ssh_host_dsa_key"),
    SECRET("/etc/ssh/ssh_host_ecdsa_key"),
    SECRET("/etc/ssh/ssh_host_ed25519_key"),
    SECRET("/etc/ssh/ssh_host_rsa_key"),
    SECRET("/etc/ssl/private"),
    SECRET("/etc/sudoers"),
    SECRET("/etc/sudoers.d"),
    SECRET("/etc/wireguard"),
    SECRET("/etc/wpa_supplicant"),
};
const size_t sw_places_n = sizeof(sw_places) / sizeof(*sw_places);

const sw_place_users sw_places_users[] = {
    {"/var/mail", false}, {"/var/spool/mail", false}, {"/media", true}, {"/run/media", true}};
const size_t sw_places_users_n = sizeof(sw_places_users) / sizeof(*sw_places_users);

bool sw_place_of_user(const char *path, const char *user)
{
	char alias[SW_PATH_MAX];
	path = sw_place_alias(path, alias, sizeof(alias));
	for (size_t i = 0; i < sw_places_users_n; i++) {
		const sw_place_users *p = &sw_places_users[i];
		if (!sw_path_covers(p->path, path) || !path[strlen(p->path)])
			continue;
		const char *name = path + strlen(p->path) + 1;
		size_t n = strcspn(name, "/");
		bool his = !user || (strlen(user) == n && !strncmp(user, name, n));
		if (his && !(p->disks && name[n]))
			return true;
	}
	return false;
}

bool sw_place_shows_user(const char *path, const char *user)
{
	char alias[SW_PATH_MAX];
	if (sw_place_of_user(path, user))
		return true;
	path = sw_place_alias(path, alias, sizeof(alias));
	for (size_t i = 0; i < sw_places_users_n; i++)
		if (sw_places_users[i].disks ? !strcmp(path, sw_places_users[i].path)
		                             : sw_path_covers(path, sw_places_users[i].path))
			return true;
	return false;
}

const char *sw_place_alias(const char *path, char *out, size_t n)
{
	if (sw_path_covers("/var/run", path) &&
	    snprintf(out, n, "%s", path + strlen("/var")) < (int)n)
		return out;
	return path;
}

const sw_place *sw_place_of(const char *path, sw_place_kind kind)
{
	char alias[SW_PATH_MAX];
	const sw_place *found = NULL;
	path = sw_place_alias(path, alias, sizeof(alias));
	for (size_t i = 0; i < sw_places_n; i++) {
		const sw_place *p = &sw_places[i];
		if (p->kind == kind && !p->only_whole && sw_path_covers(p->path, path) &&
		    (!found || strlen(p->path) > strlen(found->path)))
			found = p;
	}
	return found;
}

uint32_t sw_place_loses(const char *path)
{
	char alias[SW_PATH_MAX];
	const sw_place *in = sw_place_of(path, SW_PLACE_SOCKET),
	               *shared = sw_place_of(path, SW_PLACE_SHARED);
	uint32_t loses = (in ? in->loses : 0) | (shared ? shared->loses : 0);
	if (sw_place_socket_name(path) || sw_path_proc_link(path))
		loses |= OUT;
	path = sw_place_alias(path, alias, sizeof(alias));
	for (size_t i = 0; i < sw_places_n; i++) {
		const sw_place *p = &sw_places[i];
		bool opens = p->kind == SW_PLACE_SOCKET || p->kind == SW_PLACE_SHARED;
		if (opens && !p->only_inside && !p->rare && sw_path_covers(path, p->path))
			loses |= p->loses;
	}
	return loses;
}

bool sw_place_socket_name(const char *path)
{
	static const char *const ends[] = {".sock", ".socket", "_socket", "-sock", "-socket"};
	static const char *const names[] = {"socket", ".s.PGSQL.5432"};
	const char *leaf = strrchr(path, '/');
	leaf = leaf ? leaf + 1 : path;
	size_t n = strlen(leaf);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		size_t k = strlen(ends[i]);
		if (n > k && !strcmp(leaf + n - k, ends[i]))
			return true;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(leaf, names[i]))
			return true;
	return false;
}

bool sw_place_home_later(const char *rest)
{
	static const char *const whole[] = {".bashrc",
	                                    ".bash_profile",
	                                    ".bash_login",
	                                    ".bash_logout",
	                                    ".bash_aliases",
	                                    ".profile",
	                                    ".zshrc",
	                                    ".zshenv",
	                                    ".zprofile",
	                                    ".zlogin",
	                                    ".kshrc",
	                                    ".cshrc",
	                                    ".tcshrc",
	                                    ".login",
	                                    ".xprofile",
	                                    ".xinitrc",
	                                    ".xsession",
	                                    ".xsessionrc",
	                                    ".Xsession",
	                                    ".pam_environment",
	                                    ".gitconfig",
	                                    ".vimrc",
	                                    ".vim",
	                                    ".emacs",
	                                    ".emacs.d",
	                                    ".tmux.conf",
	                                    ".screenrc",
	                                    ".gdbinit",
	                                    ".forward",
	                                    ".procmailrc",
	                                    ".rhosts",
	                                    ".shosts",
	                                    ".oh-my-zsh",
	                                    ".nvm",
	                                    ".pyenv",
	                                    ".rbenv",
	                                    "bin",
	                                    ".bin",
	                                    ".cargo/bin",
	                                    ".cargo/env",
	                                    ".vscode",
	                                    ".local/bin",
	                                    ".local/lib",
	                                    ".local/share/systemd",
	                                    ".local/share/applications",
	                                    ".local/share/dbus-1",
	                                    ".local/share/bash-completion"};
	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		if (sw_path_covers(whole[i], rest) || sw_path_covers(rest, whole[i]))
			return true;
	return false;
}

bool sw_place_device_harmless(const char *path)
{
	static const char *const devices[] = {
	    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
	    "/dev/fuse", "/dev/dri",  "/dev/kvm",  "/dev/snd",    "/dev/net/tun"};
	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++)
		if (sw_path_covers(devices[i], path))
			return true;
	return false;
}
