// A stranger's hello, and a stranger's challenge to a dialler. Nothing may
// crash, a hello that is accepted must encode to the same bytes, and no
// challenge from outside may be believed.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "server/transport/tcp/handshake.h"

namespace tcp = penstock::server::transport::tcp;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto take = [&data, &size](auto& into) {
    const size_t count = std::min(size, into.size());
    std::transform(data, data + count, into.begin(),
                   [](uint8_t byte) { return static_cast<std::byte>(byte); });
    data += count;
    size -= count;
  };
  tcp::HelloBytes hello{};
  take(hello);
  const auto decoded = tcp::DecodeHello(hello);
  if (decoded.ok() && tcp::EncodeHello(*decoded) != hello) std::abort();
  tcp::ChallengeBytes challenge{};
  take(challenge);
  if (tcp::AnswerChallenge("a secret of the test", hello, challenge).ok()) {
    std::abort();
  }
  return 0;
}
