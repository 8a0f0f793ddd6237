/*
 * Whole processes, turn by turn: bench-spawn ROUNDS -- A... -- B... [-- C...]
 *
 * Runs each command ROUNDS times in turns with stdout and stderr to /dev/null and
 * prints for each: median and least wall time in microseconds, peak memory in KiB.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { COMMANDS_MAX = 8, ROUNDS_MAX = 10000 };

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double run(char **argv, const posix_spawn_file_actions_t *actions, long *peak)
{
	pid_t pid;
	int status;
	struct rusage usage;
	double t = now_us();
	if (!argv[0] || posix_spawnp(&pid, argv[0], actions, NULL, argv, environ) != 0) {
		fprintf(stderr, "bench-spawn: cannot run %s\n", argv[0] ? argv[0] : "nothing");
		exit(1);
	}
	wait4(pid, &status, 0, &usage);
	t = now_us() - t;
	if (usage.ru_maxrss > *peak)
		*peak = usage.ru_maxrss;
	return t;
}

int main(int argc, char **argv)
{
	char **commands[COMMANDS_MAX];
	static double times[COMMANDS_MAX][ROUNDS_MAX];
	long peaks[COMMANDS_MAX] = {0};
	int n = 0, rounds = argc > 1 ? atoi(argv[1]) : 0;
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--") != 0)
			continue;
		argv[i] = NULL;
		if (n < COMMANDS_MAX && i + 1 < argc)
			commands[n++] = argv + i + 1;
	}
	if (!n || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench-spawn ROUNDS -- A... -- B...\n");
		return 1;
	}
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	for (int r = -3; r < rounds; r++) { /* the first ones fill caches */
		for (int c = 0; c < n; c++) {
			double t = run(commands[c], &actions, &peaks[c]);
			if (r >= 0)
				times[c][r] = t;
		}
	}
	for (int c = 0; c < n; c++) {
		qsort(times[c], (size_t)rounds, sizeof(double), by_value);
		printf("%s\t%.1f\t%.1f\t%ld\n", commands[c][0], times[c][rounds / 2], times[c][0],
		       peaks[c]);
	}
	return 0;
}
