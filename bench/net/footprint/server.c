// One thread and epoll: every answer comes after LINES random cache lines of KIB KiB were written. server PORT KIB LINES
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  size_t lines = (size_t)atol(argv[2]) * 1024 / 64;
  int touched = atoi(argv[3]), one = 1;
  volatile char *memory = calloc(lines, 64);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int listener = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (!memory || bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 128)) return 1;
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, ready[64];
  epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  uint64_t random = 88172645463325252u;  // xorshift64: Marsaglia 2003
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
      if (read(fd, request, sizeof request) <= 0) { close(fd); continue; }
      for (int n = 0; n < touched; n++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        memory[random % lines * 64]++;
      }
      static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi\n";
      if (write(fd, answer, sizeof answer - 1) < 0) close(fd);
    }
  }
}
