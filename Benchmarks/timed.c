/* timed - runs a command and reports its cost.
 *
 * Build:  cc -O2 -Wall -o timed timed.c
 * Usage:  timed OUT.json COMMAND...
 *
 * This is a separate program because the peak memory that wait4 reports includes the forking parent:
 * a Python interpreter would add its 10-20 MiB to every small client.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static double seconds(struct timeval t) { return t.tv_sec + t.tv_usec / 1e6; }

int main(int argc, char **argv) {
    int status = 0;
    struct rusage use;
    if (argc < 3) { fprintf(stderr, "usage: timed OUT.json COMMAND...\n"); return 2; }
    double start = now();
    pid_t child = fork();
    if (child == 0) { execvp(argv[2], argv + 2); perror(argv[2]); _exit(127); }
    signal(SIGINT, SIG_IGN);
    if (child < 0 || wait4(child, &status, 0, &use) < 0) { perror("timed"); return 1; }
    double wall = now() - start;
    FILE *out = fopen(argv[1], "w");
    if (!out) { perror(argv[1]); return 1; }
    fprintf(out, "{\"status\": %d, \"wall\": %.4f, \"cpu\": %.4f, \"peak\": %ld, \"written\": %ld}\n",
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), wall,
            seconds(use.ru_utime) + seconds(use.ru_stime), use.ru_maxrss * 1024, use.ru_oublock * 512);
    return fclose(out) ? 1 : 0;
}
