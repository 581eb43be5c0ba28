// One thread and epoll: server [KIB LINES] PORT. /?n=N answers after N rounds of a loop, and after writing LINES random cache lines of KIB KiB.
// Compiled ahead.
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static volatile unsigned sink;

int main(int argc, char **argv) {
  int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, has_memory = argc > 3, touched = has_memory ? atoi(argv[2]) : 0;
  size_t lines = has_memory ? (size_t)atol(argv[1]) * 1024 / 64 : 1;
  volatile char *memory = calloc(lines, 64);
  uint64_t random = 88172645463325252u;  // xorshift64: Marsaglia 2003
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[argc - 1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (!memory || bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 128)) return 1;
  int poll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, ready[64];
  epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int count = epoll_wait(poll, ready, 64, -1);
    for (int i = 0; i < count; i++) {
      int fd = ready[i].data.fd;
      if (fd == listener) {
        event.data.fd = accept(listener, 0, 0);
        epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event);
        continue;
      }
      char request[4096];
      ssize_t length = read(fd, request, sizeof request - 1);
      if (length <= 0) { close(fd); continue; }
      request[length] = 0;
      char *rounds = strstr(request, "n=");
      for (int n = rounds ? atoi(rounds + 2) : 0; n > 0; n--) sink += n;
      for (int n = 0; n < touched; n++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        memory[random % lines * 64]++;
      }
      static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi\n";
      if (write(fd, answer, sizeof answer - 1) < 0) close(fd);
    }
  }
}
