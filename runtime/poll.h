#ifndef QUERN_RUNTIME_POLL_H_
#define QUERN_RUNTIME_POLL_H_

#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace quern {

/// Lets the core rest for some cycles between two looks at what another thread writes.
inline void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

/// A wait for what another thread does soon:
///
///     for (Poll poll; !done.load(std::memory_order_acquire);) poll.Wait();
///
/// After a while it gives its core away: with more threads than cores the other one may need it.
class Poll {
 public:
  void Wait() {
    if (polls_ < kPollsBeforeYielding) {
      ++polls_;
      Pause();
    } else {
      std::this_thread::yield();
    }
  }

 private:
  static constexpr int kPollsBeforeYielding = 4096;
  int polls_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_POLL_H_
