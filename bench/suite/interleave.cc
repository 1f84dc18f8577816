#include "bench/suite/interleave.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

namespace quern {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRest(4);
constexpr double kMinSampleSeconds = 200e-6;
constexpr size_t kMinSamples = 3, kMaxSamples = 60;
// What runs longer than this has no warm state that a pause of milliseconds could spoil.
constexpr double kWarmSeconds = 0.1;

double Seconds(const std::function<void()>& call, int repeats) {
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < repeats; ++i) call();
  return std::chrono::duration<double>(Clock::now() - begin).count();
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
                                                 double seconds) {
  std::vector<Turn> turns;
  for (const std::function<void()>& call : calls) turns.push_back(Plan(call, seconds));
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
      std::this_thread::sleep_for(kRest);
      if (turn.warm) Seconds(calls[c], turn.repeats);
      const double sample = Seconds(calls[c], turn.repeats);
      samples[c].push_back(sample / turn.repeats);
      turn.spent += sample;
      more = true;
    }
  }
  return samples;
}

}  // namespace quern
