#include "tests/fakes/failing_readdir.h"

#include <dirent.h>
#include <dlfcn.h>

#include <cerrno>
#include <limits>

namespace penstock::tests::fakes {
namespace {

int calls_left = std::numeric_limits<int>::max();

}  // namespace

FailingReaddir::FailingReaddir(int calls) { calls_left = calls; }

FailingReaddir::~FailingReaddir() {
  calls_left = std::numeric_limits<int>::max();
}

}  // namespace penstock::tests::fakes

// The standard library's calls come here: the program goes before libraries.
extern "C" dirent* readdir(DIR* folder) {
  using penstock::tests::fakes::calls_left;
  if (calls_left == 0) {
    errno = EIO;
    return nullptr;
  }
  --calls_left;
  static const auto libc =
      reinterpret_cast<dirent* (*)(DIR*)>(dlsym(RTLD_NEXT, "readdir"));
  return libc(folder);
}
