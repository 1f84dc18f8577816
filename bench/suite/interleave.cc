#include "bench/suite/interleave.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

namespace quern {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRest(2);
// Nobody spins for as long as this; who does is what the machine is like.
constexpr int kMaxRests = 40;
constexpr double kMinSampleSeconds = 200e-6;
// The system's scheduler needs a few of its periods to spread threads that have slept over the
// cores. Until then those of a short call can share one and wait for each other.
constexpr double kSpreadSeconds = 10e-3;
constexpr size_t kMinSamples = 3, kMaxSamples = 60;
// What runs longer than this has no warm state that a pause of milliseconds could spoil.
constexpr double kWarmSeconds = 0.1;

double Seconds(const std::function<void()>& call, int repeats) {
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < repeats; ++i) call();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double ProcessSeconds() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

// Returns when no thread of this process runs any more. Workers of OpenMP wait actively for more
// than ten milliseconds, on the cores that the next candidate's workers need. What they have used
// during a rest tells whether they still do.
void RestUntilQuiet() {
  for (int i = 0; i < kMaxRests; ++i) {
    const double before = ProcessSeconds();
    const Clock::time_point begin = Clock::now();
    std::this_thread::sleep_for(kRest);
    const double slept = std::chrono::duration<double>(Clock::now() - begin).count();
    if (ProcessSeconds() - before < 0.1 * slept) return;
  }
}

// Untimed calls, as many as a sample has and at least as long as threads need to find their cores.
void WarmUp(const std::function<void()>& call, int repeats, int threads) {
  const double wanted = threads > 1 ? kSpreadSeconds : 0;
  for (double spent = Seconds(call, repeats); spent < wanted;) spent += Seconds(call, repeats);
}

struct Turn {
  int repeats = 1;
  bool warm = true;
  double spent = 0;
  size_t wanted = kMinSamples;
};

Turn Plan(const std::function<void()>& call, double seconds) {
  Turn turn;
  double once = Seconds(call, 1);
  if (once < seconds) once = Seconds(call, 1);
  // Short calls are so many that one reading of the clock says little about them.
  while (once * turn.repeats < kMinSampleSeconds) {
    turn.repeats *= 2;
    once = Seconds(call, turn.repeats) / turn.repeats;
  }
  turn.warm = once < kWarmSeconds;
  if (once > 4 * seconds) turn.wanted = 1;
  return turn;
}

}  // namespace

std::vector<std::vector<double>> TimeInterleaved(const std::vector<std::function<void()>>& calls,
                                                 int threads, double seconds) {
  std::vector<Turn> turns;
  for (const std::function<void()>& call : calls) {
    RestUntilQuiet();
    turns.push_back(Plan(call, seconds));
  }
  std::vector<std::vector<double>> samples(calls.size());
  std::vector<size_t> order(calls.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937 random(1);
  for (bool more = true; more;) {
    more = false;
    std::shuffle(order.begin(), order.end(), random);
    for (size_t c : order) {
      Turn& turn = turns[c];
      const size_t have = samples[c].size();
      if (have >= kMaxSamples || (have >= turn.wanted && turn.spent >= seconds)) continue;
      RestUntilQuiet();
      if (turn.warm) WarmUp(calls[c], turn.repeats, threads);
      const double sample = Seconds(calls[c], turn.repeats);
      samples[c].push_back(sample / turn.repeats);
      turn.spent += sample;
      more = true;
    }
  }
  return samples;
}

}  // namespace quern
