// Adds to a counter in memory that all copies of it share: `share FILE`. The instructions are the same however many copies run; what they
// take from each other is the cache line.
//
// Two copies that each read or write their own 20 to 256 MiB took nothing from each other on the two virtual CPUs that this was made on (18 GB/s
// for each, alone and together), so that they could not show it.
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **words) {
    int file = count > 1 ? open(words[1], O_RDWR | O_CREAT, 0600) : -1;
    if (file < 0 || ftruncate(file, 4096)) return 2;
    atomic_long *counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (counter == MAP_FAILED) return 1;
    for (long i = 0; i < 200000000; i++) atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
    return 0;
}
