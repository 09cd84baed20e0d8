// Blocking sockets on loopback, and the clock that the bare program runs by.
#ifndef PENSTOCK_TESTS_BENCHMARKS_SCHEDULE_LOOPBACK_H_
#define PENSTOCK_TESTS_BENCHMARKS_SCHEDULE_LOOPBACK_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace penstock::benchmarks::schedule {

// Any failure of these ends the process with a message: there is nothing to be
// saved in a benchmark.

int64_t NowNs();  // Monotonic, the same for all processes.

// A listening socket on a port of the kernel's choice.
struct Listener {
  int fd = -1;
  int port = 0;
};
Listener Listen();
int Accept(int listener);
int Connect(int port);

void WriteAll(int fd, const void* data, size_t bytes);
void ReadAll(int fd, void* data, size_t bytes);

template <typename T>
void Put(int fd, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  WriteAll(fd, &value, sizeof(value));
}
template <typename T>
T Get(int fd) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  ReadAll(fd, &value, sizeof(value));
  return value;
}

// What has come of up to `bytes`, at least one byte. Ends the process when the
// peer has gone.
size_t ReadSome(int fd, void* data, size_t bytes);

}  // namespace penstock::benchmarks::schedule

#endif  // PENSTOCK_TESTS_BENCHMARKS_SCHEDULE_LOOPBACK_H_
