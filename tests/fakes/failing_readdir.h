// A disk that fails while a folder is read.
#ifndef PENSTOCK_TESTS_FAKES_FAILING_READDIR_H_
#define PENSTOCK_TESTS_FAKES_FAILING_READDIR_H_

namespace penstock::tests::fakes {

// While one lives, this process's calls of readdir() succeed `calls` times,
// "." and ".." included, and then fail with EIO. Takes libc's place at link
// time. One at a time; thread-compatible.
class FailingReaddir {
 public:
  explicit FailingReaddir(int calls);
  ~FailingReaddir();
  FailingReaddir(const FailingReaddir&) = delete;
  FailingReaddir& operator=(const FailingReaddir&) = delete;
};

}  // namespace penstock::tests::fakes

#endif  // PENSTOCK_TESTS_FAKES_FAILING_READDIR_H_
