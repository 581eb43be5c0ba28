// Threads that hold one lock for 30 % of a unit of work: `lock THREADS SECONDS`.
//
// A unit is 10 ms for one thread: 3 ms with the lock, 7 ms without it, both asleep, so that it scales beyond the CPUs that there are. The threads
// begin each round together (a barrier), which is what Amdahl's law describes: n threads finish n units in 0.7 + 0.3·n units of time, so
// that alpha is 0.30 by construction (Gunther, "A general theory of computational scalability", 2008: synchronous queueing).
// Threads that do not wait for each other are served faster than the law says below its limit.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together;
static volatile int is_over;
static long units;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void pause_ms(long ms) {
    struct timespec length = {0, ms * 1000000};
    nanosleep(&length, NULL);
}

static void *work(void *ends) {
    for (;;) {
        if (pthread_barrier_wait(&together) == PTHREAD_BARRIER_SERIAL_THREAD) is_over = now_s() >= *(double *)ends;
        pthread_barrier_wait(&together);
        if (is_over) return NULL;
        pthread_mutex_lock(&lock);
        pause_ms(3);
        units++;
        pthread_mutex_unlock(&lock);
        pause_ms(7);
    }
}

int main(int count, char **words) {
    int threads = count > 1 ? atoi(words[1]) : 1;
    double seconds = count > 2 ? atof(words[2]) : 1;
    if (threads < 1 || threads > 64) return 2;
    pthread_barrier_init(&together, NULL, threads);
    double begun = now_s(), ends = begun + seconds;
    pthread_t all[64];
    for (int i = 0; i < threads; i++) pthread_create(&all[i], NULL, work, &ends);
    for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
    // As a benchmark of Go prints it, which tare reads.
    printf("BenchmarkLock 1 %.1f ns/op\n", (now_s() - begun) * 1e9 / units);
    return 0;
}
