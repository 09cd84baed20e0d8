// Takes connections on the daemon's data listener. A newcomer is a stranger
// until it has proved an open epoch's secret for one of its edges: it may send
// 64 bytes (hello and proof) within 2 s, only so many strangers are kept (the
// oldest goes first), and nothing it does is seen by an edge.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_ACCEPTOR_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_ACCEPTOR_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/ids/random.h"
#include "server/transport/tcp/connection.h"
#include "server/transport/tcp/event_loop.h"
#include "server/transport/tcp/handshake.h"
#include "server/transport/tcp/listener_options.h"
#include "server/transport/tcp/socket.h"

namespace penstock::server::transport::tcp {

// Confined to the loop thread.
class Acceptor {
 public:
  // An edge that waits for its source to dial.
  struct Entry {
    Connection* connection = nullptr;  // Until Remove().
    std::string secret;
    std::function<void()> on_connected;
  };

  Acceptor(Fd listener, const ListenerOptions& options, EventLoop& loop,
           const common::ids::RandomSource& random);
  ~Acceptor();

  absl::Status Start();

  // AlreadyExists when this edge of this epoch is open here.
  absl::Status Add(int64_t epoch, const Edge& edge, const Entry& entry);
  void Remove(int64_t epoch, const Edge& edge);

 private:
  struct Stranger;

  void Accept();
  void OnEvents(Stranger* stranger);
  // Reads on; true when the stranger has become an edge's connection.
  absl::StatusOr<bool> Step(Stranger& stranger);
  void Drop(Stranger* stranger);
  // A connection is turned away: logs some of them, so that a flood does not
  // fill the log.
  void Note(const Stranger& stranger, const absl::Status& why);

  const Fd listener_;
  const ListenerOptions options_;
  EventLoop& loop_;
  const common::ids::RandomSource random_;

  std::unique_ptr<Watch> watch_;
  std::unique_ptr<Timer> rest_;  // While there are no descriptors left.
  std::list<std::unique_ptr<Stranger>> strangers_;  // Oldest first.
  std::map<std::pair<int64_t, Edge>, Entry> entries_;
  int64_t suspicious_ = 0;  // Turned away, and no early peers.
};

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_ACCEPTOR_H_
