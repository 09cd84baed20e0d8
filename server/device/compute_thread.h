// What a thread that computes does first.
#ifndef PENSTOCK_SERVER_DEVICE_COMPUTE_THREAD_H_
#define PENSTOCK_SERVER_DEVICE_COMPUTE_THREAD_H_

namespace penstock::server::device {

// How much more nice threads that compute are than the process is.
inline constexpr int kComputeNice = 5;

// Gives way: when cores are short, the thread that moves data goes first, since
// others wait for it. Of the calling thread only; lasts. That the kernel
// refuses is no error: everything is right all the same, if slower.
void BecomeComputeThread();

}  // namespace penstock::server::device

#endif  // PENSTOCK_SERVER_DEVICE_COMPUTE_THREAD_H_
