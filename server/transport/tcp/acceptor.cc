#include "server/transport/tcp/acceptor.h"

#include <sys/socket.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "server/transport/tcp/exact_read.h"
#include "server/transport/tcp/little_endian.h"

namespace penstock::server::transport::tcp {
namespace {

// Connections taken in one round, so that a flood leaves the loop to the edges.
constexpr int kAcceptsARound = 16;
constexpr absl::Duration kRest = absl::Milliseconds(100);

bool PowerOfTwo(int64_t n) { return (n & (n - 1)) == 0; }

}  // namespace

struct Acceptor::Stranger {
  Fd socket;
  std::unique_ptr<Watch> watch;  // Goes before the socket.
  std::unique_ptr<Timer> timer;
  bool proving = false;  // The hello was good and answered.
  HelloBytes hello;
  ProofBytes proof;
  size_t have = 0;
  std::pair<int64_t, Edge> key;
  ListenerNonce nonce;
};

Acceptor::Acceptor(Fd listener, const ListenerOptions& options, EventLoop& loop,
                   const common::ids::RandomSource& random)
    : listener_(std::move(listener)),
      options_(options),
      loop_(loop),
      random_(random) {}

Acceptor::~Acceptor() = default;

absl::Status Acceptor::Start() {
  ASSIGN_OR_RETURN(watch_, loop_.WatchFd(listener_.get(), UV_READABLE,
                                         [this](int) { Accept(); }));
  return absl::OkStatus();
}

absl::Status Acceptor::Add(int64_t epoch, const Edge& edge,
                           const Entry& entry) {
  if (!entries_.emplace(std::make_pair(epoch, edge), entry).second) {
    return absl::AlreadyExistsError(absl::StrCat(
        ToString(edge), " of epoch ", epoch, " is open on this listener"));
  }
  return absl::OkStatus();
}

void Acceptor::Remove(int64_t epoch, const Edge& edge) {
  entries_.erase({epoch, edge});
}

void Acceptor::Accept() {
  for (int i = 0; i < kAcceptsARound; ++i) {
    Fd socket(accept4(listener_.get(), nullptr, nullptr,
                      SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.open()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
          errno == ENOMEM) {
        // The newcomer stays in the queue, so the listener stays readable:
        // look away for a while, or the loop would spin.
        LOG(WARNING) << "data listener: " << SocketError("accept", errno);
        watch_.reset();
        rest_ = loop_.After(kRest, [this] {
          rest_.reset();
          CHECK_OK(Start());
        });
      }
      return;
    }
    if (static_cast<int>(strangers_.size()) >= options_.max_strangers) {
      Note(*strangers_.front(),
           absl::ResourceExhaustedError("too many strangers at once"));
      Drop(strangers_.front().get());
    }
    strangers_.push_back(std::make_unique<Stranger>());
    Stranger* stranger = strangers_.back().get();
    stranger->socket = std::move(socket);
    auto watch = loop_.WatchFd(stranger->socket.get(), UV_READABLE,
                               [this, stranger](int) { OnEvents(stranger); });
    if (!watch.ok()) {
      Drop(stranger);
      continue;
    }
    stranger->watch = *std::move(watch);
    stranger->timer = loop_.After(options_.stranger_timeout, [this, stranger] {
      Note(*stranger, absl::DeadlineExceededError("no proof in time"));
      Drop(stranger);
    });
  }
}

void Acceptor::OnEvents(Stranger* stranger) {
  const absl::StatusOr<bool> became_edge = Step(*stranger);
  if (!became_edge.ok()) {
    Note(*stranger, became_edge.status());
    return Drop(stranger);
  }
  if (*became_edge) {
    strangers_.remove_if(
        [stranger](const auto& each) { return each.get() == stranger; });
  }
}

absl::StatusOr<bool> Acceptor::Step(Stranger& stranger) {
  if (!stranger.proving) {
    RETURN_IF_ERROR(ReadExactly(stranger.socket, absl::MakeSpan(stranger.hello),
                                stranger.have));
    if (stranger.have < kHelloBytes) return false;
    ASSIGN_OR_RETURN(const Hello hello, DecodeHello(stranger.hello));
    stranger.key = {hello.epoch, hello.edge};
    const auto entry = entries_.find(stranger.key);
    if (entry == entries_.end()) {
      return absl::NotFoundError("no such edge here");
    }
    Store(random_(), stranger.nonce.data());
    Store(random_(), stranger.nonce.data() + 8);
    RETURN_IF_ERROR(WriteAtOnce(
        stranger.socket,
        MakeChallenge(entry->second.secret, stranger.hello, stranger.nonce)));
    stranger.proving = true;
    stranger.have = 0;
  }
  RETURN_IF_ERROR(ReadExactly(stranger.socket, absl::MakeSpan(stranger.proof),
                              stranger.have));
  if (stranger.have < kProofBytes) return false;
  // The epoch may have ended meanwhile, or the edge may stand.
  const auto entry = entries_.find(stranger.key);
  if (entry == entries_.end() || !entry->second.connection->connecting()) {
    return absl::NotFoundError("no edge waits for this connection");
  }
  if (!SameProof(stranger.proof, Prove(entry->second.secret, Prover::kDialler,
                                       stranger.hello, stranger.nonce))) {
    return absl::PermissionDeniedError("wrong proof");
  }
  RETURN_IF_ERROR(SetDataOptions(stranger.socket, options_.liveness));
  RETURN_IF_ERROR(
      WriteAtOnce(stranger.socket, absl::MakeConstSpan(&kWelcome, 1)));
  stranger.timer.reset();
  stranger.watch.reset();
  entry->second.connection->Attach(std::move(stranger.socket));
  entry->second.on_connected();
  return true;
}

void Acceptor::Note(const Stranger& stranger, const absl::Status& why) {
  // A peer that is early: its rank's epoch is open before this one's.
  if (absl::IsNotFound(why)) return;
  ++suspicious_;
  if (PowerOfTwo(suspicious_)) {
    LOG(WARNING) << "data listener: turned away "
                 << PeerAddress(stranger.socket) << " (" << why.message()
                 << "); " << suspicious_ << " such connections so far";
  }
}

void Acceptor::Drop(Stranger* stranger) {
  strangers_.remove_if(
      [stranger](const auto& each) { return each.get() == stranger; });
}

}  // namespace penstock::server::transport::tcp
