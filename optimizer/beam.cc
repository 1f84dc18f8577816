#include "optimizer/beam.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "codegen/lower.h"
#include "optimizer/action_space.h"
#include "optimizer/heuristic.h"
#include "optimizer/parallel_for.h"
#include "optimizer/sample_kernel.h"
#include "optimizer/scheduler.h"
#include "optimizer/work.h"
#include "rewrite/concat.h"
#include "rewrite/simplify.h"

namespace quern {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kImprovement = 0.99;     // a round must gain this much to be followed by another
constexpr double kReferenceWork = 1e8;    // cost of the unoptimised kernel in the check
constexpr double kPlainWork = 4e8;        // above this the plain loops are no seed
constexpr double kFinalSeconds = 1;       // about what the last comparison may take
constexpr double kLeastFirstSeconds = 5;  // for the first kernel, even of a short search
constexpr double kSearchShare = 0.85;     // of the time limit; the rest is for the finalists
constexpr size_t kFinalists = 4;

// A schedule in the beam. Its kernel lives in the graph that the round's tasks read.
struct State {
  std::vector<Action> actions;
  std::shared_ptr<const UOpGraph> graph;  // owns the kernel
  const UOp* kernel = nullptr;
  double seconds = 0;
  int64_t id = -1;
};

class BeamSearcher {
 public:
  BeamSearcher(const UOp* kernel, const Target& target, const BeamOptions& options,
               const SearchHooks& hooks)
      : kernel_(kernel), target_(target), options_(options), hooks_(hooks), start_(Clock::now()) {}

  absl::StatusOr<SearchResult> Run() {
    MeasureOptions measure = options_.measure;
    const int64_t nodes = measure.build.limits.max_nodes;
    measure.build.limits = LimitsFor(target_);
    if (nodes > 0) measure.build.limits.max_nodes = nodes;
    measure.first_seconds = std::max(kLeastFirstSeconds, options_.seconds);
    absl::StatusOr<std::unique_ptr<Measurer>> measurer =
        Measurer::Create(kernel_, target_, measure);
    if (!measurer.ok()) return measurer.status();
    measurer_ = *std::move(measurer);
    if (absl::Status s = Seed(); !s.ok()) return s;
    while (result_.rounds < options_.max_rounds && !Stop()) {
      ++result_.rounds;
      if (!Round()) break;
    }
    return Finish();
  }

 private:
  double Elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool Stop() const {
    return Elapsed() > kSearchShare * options_.seconds || (hooks_.cancelled && hooks_.cancelled());
  }

  // The unoptimised and the heuristic's schedule.
  absl::Status Seed() {
    auto graph = std::make_shared<UOpGraph>();
    const UOp* plain = graph->Import(kernel_);
    Scheduler heuristic(*graph, plain, target_);
    ApplyHeuristic(heuristic);
    std::vector<Candidate> seeds;
    seeds.push_back({heuristic.actions(), graph, heuristic.kernel(), "", /*unlimited=*/true});
    seen_.insert(Simplify(*graph, heuristic.kernel())->hash);
    Measure(seeds);
    if (!beam_.empty()) heuristic_ = beam_[0];
    // The plain loops of a large kernel take too long to be worth a measurement.
    if (beam_.empty() || EstimateWork(kernel_).cost < kPlainWork) {
      seen_.insert(Simplify(*graph, plain)->hash);
      Measure({{{}, graph, plain, ""}});
    }
    if (beam_.empty()) return last_error_;
    return absl::OkStatus();
  }

  // Every new schedule that one more action gives, duplicates dropped, in a fixed order.
  std::vector<Candidate> Expand() {
    auto base = std::make_shared<UOpGraph>();
    for (State& s : beam_) {
      s.kernel = base->Import(s.kernel);
      s.graph = base;
    }
    base->Freeze();
    struct Step {
      const State* state;
      Action action;
    };
    std::vector<std::vector<Action>> legal(beam_.size());
    ParallelFor(beam_.size(), [&](size_t i) {
      UOpGraph overlay(base.get());
      legal[i] = LegalActions(Scheduler(overlay, beam_[i].kernel, target_));
    });
    std::vector<Step> steps;
    for (size_t i = 0; i < beam_.size(); ++i) {
      for (const Action& a : legal[i]) steps.push_back({&beam_[i], a});
    }
    struct Made {
      Candidate candidate;
      Hash128 hash;
      bool ok = false;
    };
    std::vector<Made> made(steps.size());
    // Each task has an overlay of its own on the frozen base.
    ParallelFor(steps.size(), [&](size_t i) {
      UOpGraph overlay(base.get());
      Scheduler scheduler(overlay, steps[i].state->kernel, target_);
      if (!scheduler.Apply(steps[i].action).ok()) return;
      const UOp* simple = Simplify(overlay, scheduler.kernel());
      Made& m = made[i];
      m.candidate.actions = steps[i].state->actions;
      m.candidate.actions.push_back(steps[i].action);
      m.candidate.graph = std::make_shared<UOpGraph>();
      m.candidate.kernel = m.candidate.graph->Import(scheduler.kernel());
      m.hash = simple->hash;
      m.ok = true;
    });
    std::vector<Candidate> fresh;
    for (Made& m : made) {
      if (m.ok && seen_.insert(m.hash).second) fresh.push_back(std::move(m.candidate));
    }
    return fresh;
  }

  // Measures candidates in small batches and puts what runs into the beam.
  void Measure(std::vector<Candidate> candidates) {
    // Large enough that the last compile of a batch leaves few cores idle.
    const size_t batch_size = static_cast<size_t>(16 * target_.cores);
    for (size_t begin = 0; begin < candidates.size(); begin += batch_size) {
      if (result_.rounds > 0 && Stop()) return;
      const size_t end = std::min(candidates.size(), begin + batch_size);
      std::vector<Candidate> batch(std::make_move_iterator(candidates.begin() + begin),
                                   std::make_move_iterator(candidates.begin() + end));
      if (hooks_.inject_fault) {
        for (Candidate& c : batch) hooks_.inject_fault(c);
      }
      const bool first = result_.rounds == 0;
      std::vector<Measurement> measurements =
          measurer_->Measure(batch, best_seconds_, [&] { return !first && Stop(); });
      for (size_t i = 0; i < batch.size(); ++i) {
        const Measurement& m = measurements[i];
        if (!m.status.ok()) {
          const absl::StatusCode code = m.status.code();
          if (code == absl::StatusCode::kAlreadyExists) continue;
          if (code == absl::StatusCode::kDeadlineExceeded && Stop()) continue;
          last_error_ = m.status;
          ++result_.failed;
          continue;
        }
        ++result_.candidates;
        // What the heuristic makes is not too large, and neither is what resembles it.
        if (batch[i].unlimited) measurer_->AllowNodes(2 * m.built.nodes);
        if (m.aborted && best_seconds_ > 0) continue;  // Too slow for another look.
        beam_.push_back({batch[i].actions, batch[i].graph, batch[i].kernel, m.seconds, m.id});
        if (best_seconds_ == 0 || m.seconds < best_seconds_) best_seconds_ = m.seconds;
      }
      Report();
    }
  }

  void Report() const {
    if (!hooks_.progress) return;
    hooks_.progress(
        {result_.rounds, result_.candidates, best_seconds_, Elapsed(), options_.seconds});
  }

  // One round; false when it has brought nothing.
  bool Round() {
    const double before = best_seconds_;
    std::vector<State> previous = beam_;
    Measure(Expand());
    SortBeam(beam_, 2 * static_cast<size_t>(options_.width));
    Retime(beam_, 4);
    SortBeam(beam_, static_cast<size_t>(options_.width));
    std::vector<int64_t> keep = {heuristic_.id};
    for (const State& s : beam_) keep.push_back(s.id);
    measurer_->KeepOnly(keep);
    bool fresh = false;
    for (const State& s : beam_) {
      fresh |= std::none_of(previous.begin(), previous.end(),
                            [&](const State& p) { return p.id == s.id; });
    }
    return fresh && (best_seconds_ < before * kImprovement || result_.rounds < 3);
  }

  static void SortBeam(std::vector<State>& beam, size_t keep) {
    std::sort(beam.begin(), beam.end(), [](const State& a, const State& b) {
      return a.seconds != b.seconds ? a.seconds < b.seconds : a.id < b.id;
    });
    if (beam.size() > keep) beam.resize(keep);
  }

  // Times the survivors again, interleaved, and replaces their times by the medians.
  void Retime(std::vector<State>& states, int64_t rounds) {
    if (states.size() < 2) return;
    std::vector<int64_t> ids;
    for (const State& s : states) ids.push_back(s.id);
    absl::StatusOr<std::vector<std::vector<double>>> times =
        measurer_->TimeInterleaved(ids, rounds);
    if (!times.ok()) return;  // The worker was lost; the first times stand.
    for (size_t i = 0; i < states.size(); ++i) states[i].seconds = Median((*times)[i]);
    best_seconds_ = states[0].seconds;
    for (const State& s : states) best_seconds_ = std::min(best_seconds_, s.seconds);
  }

  absl::StatusOr<SearchResult> Finish() {
    SortBeam(beam_, kFinalists);
    std::vector<State> finalists = beam_;
    const bool has_heuristic = heuristic_.id >= 0;
    if (has_heuristic && std::none_of(finalists.begin(), finalists.end(),
                                      [&](const State& s) { return s.id == heuristic_.id; })) {
      finalists.push_back(heuristic_);
    }
    std::vector<int64_t> ids;
    for (const State& s : finalists) ids.push_back(s.id);
    absl::StatusOr<std::vector<std::vector<double>>> times =
        measurer_->TimeInterleaved(ids, FinalRounds(ids.size()));
    if (!times.ok()) return times.status();
    size_t heuristic_at = finalists.size();
    for (size_t i = 0; i < finalists.size(); ++i) {
      finalists[i].seconds = Median((*times)[i]);
      if (finalists[i].id == heuristic_.id) heuristic_at = i;
    }
    // Against the heuristic by paired differences: what is not clearly faster is not better.
    std::vector<size_t> order(finalists.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      if (finalists[a].seconds != finalists[b].seconds) {
        return finalists[a].seconds < finalists[b].seconds;
      }
      return a < b;
    });
    if (heuristic_at < finalists.size()) {
      const std::vector<double>& base = (*times)[heuristic_at];
      std::erase_if(order, [&](size_t i) {
        if (i == heuristic_at) return false;
        std::vector<double> ratios;
        for (size_t r = 0; r < base.size(); ++r) ratios.push_back((*times)[i][r] / base[r]);
        return Median(ratios) > 1.0;
      });
      result_.heuristic_seconds = finalists[heuristic_at].seconds;
    }
    absl::StatusOr<int64_t> reference = PrepareReference();
    if (!reference.ok()) return reference.status();
    for (size_t i : order) {
      const State& s = finalists[i];
      absl::StatusOr<Measurer::Comparison> comparison =
          measurer_->Compare(*reference, s.id, ToleranceFor(kernel_));
      if (!comparison.ok() || !comparison->equal) {
        last_error_ = comparison.ok()
                          ? absl::InternalError(Concat("search: ", ActionsToString(s.actions),
                                                       " differs by ", comparison->max_rel_error,
                                                       " from the unoptimised kernel"))
                          : comparison.status();
        ++result_.failed;
        continue;
      }
      result_.max_abs_error = comparison->max_abs_error;
      result_.max_rel_error = comparison->max_rel_error;
      result_.actions = s.actions;
      result_.seconds = s.seconds;
      result_.search_seconds = Elapsed();
      return result_;
    }
    return last_error_;
  }

  // As many rounds as the time for them allows, odd.
  int64_t FinalRounds(size_t finalists) const {
    const double round = best_seconds_ * static_cast<double>(finalists);
    return std::clamp<int64_t>(static_cast<int64_t>(kFinalSeconds / round), 5, 30) | 1;
  }

  // The unoptimised kernel, for a sample of the outputs if all would take long; its id.
  absl::StatusOr<int64_t> PrepareReference() {
    auto graph = std::make_shared<UOpGraph>();
    const UOp* reference = graph->Import(kernel_);
    bool in_place = false;
    for (const KernelParam& p : CollectParams(kernel_)) in_place |= p.read && p.written;
    // In place, a sample would leave the other elements at their first values.
    if (!in_place) reference = SampleKernel(*graph, reference, kReferenceWork);
    return measurer_->Prepare({{}, graph, reference, ""});
  }

  const UOp* kernel_;
  const Target& target_;
  const BeamOptions& options_;
  const SearchHooks& hooks_;
  Clock::time_point start_;
  std::unique_ptr<Measurer> measurer_;
  std::vector<State> beam_;
  State heuristic_;
  std::set<Hash128> seen_;
  double best_seconds_ = 0;
  absl::Status last_error_ = absl::InternalError("search: no schedule runs");
  SearchResult result_;
};

}  // namespace

absl::StatusOr<SearchResult> BeamSearch(const UOp* kernel, const Target& target,
                                        const BeamOptions& options, const SearchHooks& hooks) {
  return BeamSearcher(kernel, target, options, hooks).Run();
}

}  // namespace quern
