#include "driver/program_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

namespace quern {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMinSampleSeconds = 50e-6;
constexpr int kMaxSamples = 200;
// A run of so many times the time for a plan is not repeated: cold caches no longer matter to it.
constexpr double kOnceFactor = 4;

// The pointers that the plan wants, and the tensors to be restored before each run.
struct Arguments {
  std::vector<void*> pointers;
  struct Restored {
    void* to;
    const void* from;
    size_t bytes;
  };
  std::vector<Restored> restored;
};

Arguments ArgumentsOf(const ExecutionPlan& plan, const Program& program,
                      const TensorMemory& pristine, const TensorMemory& memory) {
  Arguments arguments;
  for (const TensorInfo& wanted : plan.arguments()) {
    for (size_t i = 0; i < program.tensors.size(); ++i) {
      if (program.tensors[i].slot != wanted.slot) continue;
      const auto place = static_cast<int64_t>(i);
      arguments.pointers.push_back(memory.data(place));
      if (wanted.role == TensorRole::kInOut) {
        arguments.restored.push_back(
            {memory.data(place), pristine.data(place), static_cast<size_t>(wanted.bytes())});
      }
    }
  }
  return arguments;
}

absl::StatusOr<double> Sample(ExecutionPlan& plan, Arguments& arguments, int repeats) {
  for (const Arguments::Restored& r : arguments.restored) std::memcpy(r.to, r.from, r.bytes);
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < repeats; ++i) {
    if (absl::Status s = plan.Run(arguments.pointers); !s.ok()) return s;
  }
  return std::chrono::duration<double>(Clock::now() - begin).count() / repeats;
}

}  // namespace

absl::Status RunOnce(ExecutionPlan& plan, const Program& program, const TensorMemory& pristine,
                     TensorMemory& memory) {
  Arguments arguments = ArgumentsOf(plan, program, pristine, memory);
  return Sample(plan, arguments, 1).status();
}

absl::StatusOr<std::vector<std::vector<double>>> TimePlans(const std::vector<ExecutionPlan*>& plans,
                                                           const Program& program,
                                                           const TensorMemory& pristine,
                                                           TensorMemory& memory, double seconds) {
  struct Turn {
    Arguments arguments;
    int repeats = 1;
    double spent = 0;
    bool once = false;  // so slow that its first run is all there is
  };
  std::vector<Turn> turns;
  std::vector<std::vector<double>> samples(plans.size());
  for (size_t p = 0; p < plans.size(); ++p) {
    ExecutionPlan* plan = plans[p];
    Turn turn;
    turn.arguments = ArgumentsOf(*plan, program, pristine, memory);
    // One run to warm up, one to see how long it takes.
    absl::StatusOr<double> once = Sample(*plan, turn.arguments, 1);
    if (once.ok() && *once < seconds) once = Sample(*plan, turn.arguments, 1);
    if (!once.ok()) return once.status();
    if (*once > kOnceFactor * seconds) {
      turn.once = true;
      samples[p].push_back(*once);
    }
    // What is updated in place is restored before every run, so runs cannot be joined.
    if (turn.arguments.restored.empty() && *once < kMinSampleSeconds) {
      turn.repeats = static_cast<int>(std::ceil(kMinSampleSeconds / std::max(*once, 1e-8)));
    }
    turns.push_back(std::move(turn));
  }
  // A fixed order would let one plan always meet the same moment of a scheduler's time slice.
  std::vector<size_t> order(plans.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937 random(1);
  for (bool more = true; more;) {
    more = false;
    std::shuffle(order.begin(), order.end(), random);
    for (size_t p : order) {
      const bool enough = turns[p].once || (turns[p].spent >= seconds && samples[p].size() >= 2);
      if (enough || samples[p].size() >= kMaxSamples) continue;
      absl::StatusOr<double> t = Sample(*plans[p], turns[p].arguments, turns[p].repeats);
      if (!t.ok()) return t.status();
      samples[p].push_back(*t);
      turns[p].spent += *t * turns[p].repeats;
      more = true;
    }
  }
  return samples;
}

double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

}  // namespace quern
