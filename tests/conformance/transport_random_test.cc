// Random traffic: ranks on threads of their own, random edges, capacities,
// sizes and pauses; every payload must arrive whole and in order.
#include <algorithm>
#include <deque>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "tests/conformance/transport_harness.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::testing {
namespace {

using RandomTrafficTest = TransportTest;
PENSTOCK_FOR_EVERY_TRANSPORT(RandomTrafficTest);

constexpr int kMessages = 60;  // On each edge.

// What message `step` of an edge looks like, at both ends.
std::vector<float> Values(const Link& link, int step) {
  std::mt19937 random(link.edge.source_stage * 7919 + step);
  const int kind = random() % 10;
  const size_t count = kind == 0   ? 0
                       : kind == 1 ? 100000 + random() % 50000
                                   : 1 + random() % 500;
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random() % 1000);
  return values;
}

// One rank's traffic: at random, the next send or receive of a random edge,
// within the edges' capacities; at most three sends of an edge pending.
void RunRank(Rank& rank, int number, const std::vector<Link>& links,
             uint32_t seed) {
  struct End {
    const Link* link;
    bool sends;
    int next = 0;
    std::deque<std::pair<int, std::unique_ptr<Message>>> pending;
  };
  std::deque<End> ends;
  for (const Link& link : links) {
    if (link.from == number) ends.push_back({.link = &link, .sends = true});
    if (link.to == number) ends.push_back({.link = &link, .sends = false});
  }
  std::mt19937 random(seed);
  const auto settle = [](End& end) {
    auto [step, message] = std::move(end.pending.front());
    end.pending.pop_front();
    ASSERT_OK(message->Await());
    EXPECT_TRUE(message->values == Values(*end.link, step))
        << ToString(end.link->edge) << " message " << step;
  };
  // Every edge's receives are posted before its sends are waited for, as a
  // verified schedule has it; here by never blocking on a full end.
  while (true) {
    std::vector<End*> open;
    bool waits = false;
    for (End& end : ends) {
      while (!end.pending.empty() && end.pending.front().second->done->Done()) {
        settle(end);
      }
      const size_t limit = end.sends ? 3 : end.link->capacity;
      if (end.next < kMessages && end.pending.size() < limit) {
        open.push_back(&end);
      }
      waits |= !end.pending.empty();
    }
    if (open.empty()) {
      if (!waits) return;
      for (End& end : ends) {
        if (end.pending.empty()) continue;
        // Any of them will do: the others are looked at again afterwards.
        (void)end.pending.front().second->done->Await(
            absl::Now() + absl::Milliseconds(1 + random() % 3));
        break;
      }
      std::rotate(ends.begin(), ends.begin() + 1, ends.end());
      if (!rank->status().ok()) FAIL() << rank->status();
      continue;
    }
    End& end = *open[random() % open.size()];
    const int step = end.next++;
    std::vector<float> values = Values(*end.link, step);
    end.pending.emplace_back(
        step, end.sends ? rank.Send(end.link->edge, step, std::move(values))
                        : rank.Receive(end.link->edge, step, values.size()));
  }
}

TEST_P(RandomTrafficTest, EveryPayloadArrivesWholeAndInOrder) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const int ranks = 2 + random() % 3;
    const int stages = ranks * (1 + random() % 2);
    std::vector<Link> links;
    for (int stage = 0; stage + 1 < stages; ++stage) {
      const int from = stage % ranks, to = (stage + 1) % ranks;
      const int capacity = 1 + random() % 4;
      links.push_back({Activation(stage), from, to, capacity});
      links.push_back({Gradient(stage + 1), to, from, capacity});
    }
    std::unique_ptr<World> world = GetParam().create();
    std::vector<std::unique_ptr<Rank>> all;
    for (int r = 0; r < ranks; ++r) {
      all.push_back(std::make_unique<Rank>(*world, r, links));
    }
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r) {
      threads.emplace_back([&all, &links, r, seed] {
        RunRank(*all[r], r, links, seed * 100 + r);
        EXPECT_OK((*all[r])->Close(Soon()));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace penstock::testing
