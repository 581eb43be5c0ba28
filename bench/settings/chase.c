/* Chases pointers through MIB mebibytes of memory from malloc, in an order that no prefetcher foresees: STEPS steps, each waits for the one before. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE_BYTES = 64 };

static uint64_t state = 24;

static uint64_t random_number(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: chase MIB STEPS\n");
        return 2;
    }
    size_t lines = (size_t)strtoull(argv[1], NULL, 10) * 1024 * 1024 / LINE_BYTES;
    size_t steps = (size_t)strtoull(argv[2], NULL, 10);
    char *memory = lines > 1 ? malloc(lines * LINE_BYTES) : NULL;
    if (!memory) {
        fprintf(stderr, "chase: no memory\n");
        return 1;
    }
    /* x -> x * a + c modulo a power of two visits every line once (Hull and Dobell, 1962): no table of the order has to be made. */
    size_t mask = 1;
    while (mask * 2 <= lines) mask *= 2;
    mask -= 1;
    size_t a = (random_number() & mask & ~(size_t)7) | 5, c = random_number() | 1;
    for (size_t at = 0; at <= mask; at++) *(size_t *)(memory + at * LINE_BYTES) = (at * a + c) & mask;
    size_t at = 0;
    for (size_t step = 0; step < steps; step++) at = *(volatile size_t *)(memory + at * LINE_BYTES);
    return at > mask;
}
