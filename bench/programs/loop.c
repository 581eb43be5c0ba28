/* loop RUNS PROGRAM [WORD ...]: starts the program by posix_spawn and waits for its end by waitid, RUNS times. Prints the
 * nanoseconds from before the start to after the end of each run, one a line. cc -O2 -o loop loop.c */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static long long now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int argc, char **argv)
{
    posix_spawn_file_actions_t actions;
    long long *took;
    int runs, at;

    if (argc < 3 || (runs = atoi(argv[1])) < 1 || !(took = calloc(runs, sizeof *took)))
        return 2;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    for (at = 0; at < runs; at++) {
        siginfo_t end;
        pid_t pid;
        long long began = now_ns();

        if (posix_spawnp(&pid, argv[2], &actions, NULL, argv + 2, environ) || waitid(P_PID, pid, &end, WEXITED))
            return 1;
        took[at] = now_ns() - began;
        if (end.si_code != CLD_EXITED || end.si_status)
            return 1;
    }
    for (at = 0; at < runs; at++)
        printf("%lld\n", took[at]);
    return 0;
}
