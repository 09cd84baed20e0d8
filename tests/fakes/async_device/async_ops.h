// The ops of the asynchronous fake: each enqueues the wrapped device's op.
#ifndef PENSTOCK_TESTS_FAKES_ASYNC_DEVICE_ASYNC_OPS_H_
#define PENSTOCK_TESTS_FAKES_ASYNC_DEVICE_ASYNC_OPS_H_

#include "server/device/check_args.h"
#include "server/device/ops.h"
#include "tests/fakes/async_device/async_stream.h"

namespace penstock::tests::fakes {

namespace device = server::device;

// Thread-safe as far as the wrapped ops are: streams run concurrently.
class AsyncOps final : public device::Ops {
 public:
  // `wrapped` and `inline_stream` must outlive all streams. The inline stream
  // never waits, so that it never fails and many threads may use it.
  AsyncOps(device::Ops& wrapped, device::Stream& inline_stream)
      : wrapped_(wrapped), inline_stream_(inline_stream) {}

  int64_t PackedWeightBytes(int64_t in, int64_t out) const override {
    return wrapped_.PackedWeightBytes(in, out);
  }
  int64_t ScratchBytes(const device::OpSizes& sizes) const override {
    return wrapped_.ScratchBytes(sizes);
  }
  absl::Status ReserveScratch(const device::OpSizes& sizes) override {
    return wrapped_.ReserveScratch(sizes);
  }
  void PackWeight(device::Stream& stream,
                  const device::Weight& weight) override {
    Enqueue(stream,
            [this, weight] { wrapped_.PackWeight(inline_stream_, weight); });
  }
  void LinearForward(device::Stream& stream,
                     const device::LinearForwardArgs& args) override {
    Later(stream, args, &device::Ops::LinearForward);
  }
  void LinearBackwardInput(
      device::Stream& stream,
      const device::LinearBackwardInputArgs& args) override {
    Later(stream, args, &device::Ops::LinearBackwardInput);
  }
  void LinearBackwardWeight(
      device::Stream& stream,
      const device::LinearBackwardWeightArgs& args) override {
    Later(stream, args, &device::Ops::LinearBackwardWeight);
  }
  void EmbeddingForward(device::Stream& stream,
                        const device::EmbeddingForwardArgs& args) override {
    Later(stream, args, &device::Ops::EmbeddingForward);
  }
  void EmbeddingBackward(device::Stream& stream,
                         const device::EmbeddingBackwardArgs& args) override {
    Later(stream, args, &device::Ops::EmbeddingBackward);
  }
  void LayerNormForward(device::Stream& stream,
                        const device::LayerNormForwardArgs& args) override {
    Later(stream, args, &device::Ops::LayerNormForward);
  }
  void LayerNormBackwardInput(
      device::Stream& stream,
      const device::LayerNormBackwardInputArgs& args) override {
    Later(stream, args, &device::Ops::LayerNormBackwardInput);
  }
  void LayerNormBackwardWeight(
      device::Stream& stream,
      const device::LayerNormBackwardWeightArgs& args) override {
    Later(stream, args, &device::Ops::LayerNormBackwardWeight);
  }
  void Rope(device::Stream& stream, const device::RopeArgs& args) override {
    Later(stream, args, &device::Ops::Rope);
  }
  void AttentionForward(device::Stream& stream,
                        const device::AttentionForwardArgs& args) override {
    Later(stream, args, &device::Ops::AttentionForward);
  }
  void AttentionBackward(device::Stream& stream,
                         const device::AttentionBackwardArgs& args) override {
    Later(stream, args, &device::Ops::AttentionBackward);
  }
  void GeluForward(device::Stream& stream,
                   const device::GeluForwardArgs& args) override {
    Later(stream, args, &device::Ops::GeluForward);
  }
  void Multiply(device::Stream& stream,
                const device::MultiplyArgs& args) override {
    Later(stream, args, &device::Ops::Multiply);
  }
  void SwigluForward(device::Stream& stream,
                     const device::SwigluForwardArgs& args) override {
    Later(stream, args, &device::Ops::SwigluForward);
  }
  void SwigluBackward(device::Stream& stream,
                      const device::SwigluBackwardArgs& args) override {
    Later(stream, args, &device::Ops::SwigluBackward);
  }
  void Add(device::Stream& stream, const device::AddArgs& args) override {
    Later(stream, args, &device::Ops::Add);
  }
  void ApplyDropout(device::Stream& stream,
                    const device::DropoutArgs& args) override {
    Later(stream, args, &device::Ops::ApplyDropout);
  }
  void CrossEntropyForward(
      device::Stream& stream,
      const device::CrossEntropyForwardArgs& args) override {
    Later(stream, args, &device::Ops::CrossEntropyForward);
  }
  void CrossEntropyBackward(
      device::Stream& stream,
      const device::CrossEntropyBackwardArgs& args) override {
    Later(stream, args, &device::Ops::CrossEntropyBackward);
  }
  void Adamw(device::Stream& stream, const device::AdamwArgs& args) override {
    Later(stream, args, &device::Ops::Adamw);
  }
  void Sgd(device::Stream& stream, const device::SgdArgs& args) override {
    Later(stream, args, &device::Ops::Sgd);
  }
  void SumSquares(device::Stream& stream,
                  const device::SumSquaresArgs& args) override {
    Later(stream, args, &device::Ops::SumSquares);
  }
  void Fill(device::Stream& stream, const device::FillArgs& args) override {
    Later(stream, args, &device::Ops::Fill);
  }
  void Copy(device::Stream& stream, const device::CopyArgs& args) override {
    Later(stream, args, &device::Ops::Copy);
  }

 private:
  template <typename Args>
  void Later(device::Stream& stream, const Args& args,
             void (device::Ops::*op)(device::Stream&, const Args&)) {
    device::CheckArgs(args);  // Here, where the caller is on the stack.
    Enqueue(stream, [this, args, op] { (wrapped_.*op)(inline_stream_, args); });
  }
  void Enqueue(device::Stream& stream, std::function<void()> work) {
    dynamic_cast<AsyncStream&>(stream).Enqueue(std::move(work));
  }

  device::Ops& wrapped_;
  device::Stream& inline_stream_;
};

}  // namespace penstock::tests::fakes

#endif  // PENSTOCK_TESTS_FAKES_ASYNC_DEVICE_ASYNC_OPS_H_
