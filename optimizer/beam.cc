#include "optimizer/beam.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
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

constexpr double kImprovement = 0.99;     // a gain of less is none
constexpr double kIdleShare = 0.2;        // of the time limit that may bring no gain, at least
constexpr double kFarBehind = 2;          // times the best: no schedule to go on from
constexpr size_t kMostKept = 64;          // schedules
constexpr double kReferenceWork = 1e8;    // cost of the unoptimised kernel in the check
constexpr double kPlainWork = 4e8;        // above this the plain loops are no seed
constexpr double kPlainShare = 0.001;     // of the time limit: above this nothing is made of them
constexpr double kFinalSeconds = 1;       // about what the last comparison may take
constexpr double kLeastFirstSeconds = 5;  // for the first kernel, even of a short search
constexpr double kSearchShare = 0.85;     // of the time limit; the rest is for the finalists
constexpr size_t kFinalists = 4;

// A schedule that was measured. Its kernel lives in the graph that the round's tasks read.
struct State {
  std::vector<Action> actions;
  std::shared_ptr<const UOpGraph> graph;  // owns the kernel
  const UOp* kernel = nullptr;
  double seconds = 0;
  int64_t id = -1;
  std::optional<Decisions> decisions;  // if the heuristic made it
  bool expanded = false;
};

// A schedule to be measured.
struct Trial {
  Candidate candidate;
  std::optional<Decisions> decisions;
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
    plain_ = graph->Import(kernel_);
    plain_graph_ = graph;
    Scheduler heuristic(*graph, plain_, target_);
    Decisions decisions;
    ApplyHeuristic(heuristic, decisions);
    std::vector<Trial> seeds(1);
    seeds[0].candidate = {heuristic.actions(), graph, heuristic.kernel(), "", /*unlimited=*/true};
    seeds[0].decisions = decisions;
    seen_.insert(Simplify(*graph, heuristic.kernel())->hash);
    const Hash128 plain_hash = Simplify(*graph, plain_)->hash;
    graph->Freeze();
    Measure(seeds);
    if (!beam_.empty()) heuristic_ = beam_[0];
    // The plain loops of a large kernel take too long to be worth a measurement.
    if (beam_.empty() || EstimateWork(kernel_).cost < kPlainWork) {
      seen_.insert(plain_hash);
      Measure({{{{}, graph, plain_, ""}, std::nullopt}});
    }
    if (beam_.empty()) return last_error_;
    return absl::OkStatus();
  }

  // The schedules to go on from: the fastest that were not taken before.
  std::vector<const State*> Take() {
    std::vector<const State*> taken;
    for (State& s : beam_) {
      if (taken.size() == static_cast<size_t>(options_.width)) break;
      // The plain loops are far behind as a rule, but what becomes of them may not be.
      const bool plain = s.actions.empty() && s.seconds < kPlainShare * options_.seconds;
      if (s.expanded || (!plain && s.seconds > kFarBehind * best_seconds_)) continue;
      s.expanded = true;
      taken.push_back(&s);
    }
    return taken;
  }

  // Every new schedule that one other decision or one more action gives, duplicates dropped, in a
  // fixed order: the heuristic's first.
  std::vector<Trial> Expand(const std::vector<const State*>& from) {
    auto base = std::make_shared<UOpGraph>();
    std::vector<const UOp*> kernels;
    for (const State* s : from) kernels.push_back(base->Import(s->kernel));
    base->Freeze();
    struct Step {
      size_t from = 0;
      std::optional<Deviations> deviations;  // nullopt: one more action
      Action action;
    };
    std::vector<std::vector<Action>> legal(from.size());
    ParallelFor(from.size(), [&](size_t i) {
      UOpGraph overlay(base.get());
      legal[i] = LegalActions(Scheduler(overlay, kernels[i], target_));
    });
    std::vector<Step> steps;
    for (size_t i = 0; i < from.size(); ++i) {
      if (!from[i]->decisions.has_value()) continue;
      for (Deviations& d : from[i]->decisions->Neighbours()) steps.push_back({i, std::move(d), {}});
    }
    for (size_t i = 0; i < from.size(); ++i) {
      for (const Action& a : legal[i]) steps.push_back({i, std::nullopt, a});
    }
    struct Made {
      Trial trial;
      Hash128 hash;
      bool ok = false;
    };
    std::vector<Made> made(steps.size());
    // Each task has an overlay of its own on a frozen graph.
    ParallelFor(steps.size(), [&](size_t i) {
      const Step& step = steps[i];
      const bool deviates = step.deviations.has_value();
      UOpGraph overlay(deviates ? plain_graph_.get() : base.get());
      Scheduler scheduler(overlay, deviates ? plain_ : kernels[step.from], target_);
      Made& m = made[i];
      Candidate& candidate = m.trial.candidate;
      if (deviates) {
        Decisions decisions(*step.deviations);
        ApplyHeuristic(scheduler, decisions);
        m.trial.decisions = std::move(decisions);
        candidate.actions = scheduler.actions();
      } else {
        if (!scheduler.Apply(step.action).ok()) return;
        candidate.actions = from[step.from]->actions;
        candidate.actions.push_back(step.action);
      }
      candidate.graph = std::make_shared<UOpGraph>();
      candidate.kernel = candidate.graph->Import(scheduler.kernel());
      m.hash = Simplify(overlay, scheduler.kernel())->hash;
      m.ok = true;
    });
    std::vector<Trial> fresh;
    for (Made& m : made) {
      if (m.ok && seen_.insert(m.hash).second) fresh.push_back(std::move(m.trial));
    }
    return fresh;
  }

  // Measures trials in small batches and puts what runs into the beam.
  void Measure(const std::vector<Trial>& trials) {
    // Large enough that the last compile of a batch leaves few cores idle.
    const size_t batch_size = static_cast<size_t>(16 * target_.cores);
    for (size_t begin = 0; begin < trials.size(); begin += batch_size) {
      if (result_.rounds > 0 && Stop()) return;
      const size_t end = std::min(trials.size(), begin + batch_size);
      std::vector<Candidate> batch;
      for (size_t i = begin; i < end; ++i) batch.push_back(trials[i].candidate);
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
        beam_.push_back({batch[i].actions, batch[i].graph, batch[i].kernel, m.seconds, m.id,
                         trials[begin + i].decisions, /*expanded=*/false});
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

  // One round; false when there is nothing to go on from, or it has not paid for long.
  bool Round() {
    const std::vector<const State*> from = Take();
    if (from.empty()) return false;
    const std::vector<Trial> trials = Expand(from);
    Measure(trials);
    SortBeam(beam_, kMostKept);
    Retime(4);
    SortBeam(beam_, kMostKept);
    std::vector<int64_t> keep = {heuristic_.id};
    for (const State& s : beam_) keep.push_back(s.id);
    measurer_->KeepOnly(keep);
    if (gained_seconds_ == 0 || best_seconds_ < gained_seconds_ * kImprovement) {
      gained_seconds_ = best_seconds_;
      gained_at_ = Elapsed();
    }
    return Elapsed() - gained_at_ < std::max(gained_at_, kIdleShare * options_.seconds);
  }

  static void SortBeam(std::vector<State>& beam, size_t keep) {
    std::sort(beam.begin(), beam.end(), [](const State& a, const State& b) {
      return a.seconds != b.seconds ? a.seconds < b.seconds : a.id < b.id;
    });
    if (beam.size() > keep) beam.resize(keep);
  }

  // Times the fastest again, interleaved, and replaces their times by the medians.
  void Retime(int64_t rounds) {
    const size_t count = std::min(beam_.size(), 2 * static_cast<size_t>(options_.width));
    if (count < 2) return;
    std::vector<int64_t> ids;
    for (size_t i = 0; i < count; ++i) ids.push_back(beam_[i].id);
    absl::StatusOr<std::vector<std::vector<double>>> times =
        measurer_->TimeInterleaved(ids, rounds);
    if (!times.ok()) return;  // The worker was lost; the first times stand.
    best_seconds_ = Median((*times)[0]);
    for (size_t i = 0; i < count; ++i) {
      beam_[i].seconds = Median((*times)[i]);
      best_seconds_ = std::min(best_seconds_, beam_[i].seconds);
    }
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
  const UOp* plain_ = nullptr;
  std::shared_ptr<const UOpGraph> plain_graph_;
  std::set<Hash128> seen_;
  double best_seconds_ = 0;
  double gained_seconds_ = 0;  // the best when there last was a gain
  double gained_at_ = 0;       // then
  absl::Status last_error_ = absl::InternalError("search: no schedule runs");
  SearchResult result_;
};

}  // namespace

absl::StatusOr<SearchResult> BeamSearch(const UOp* kernel, const Target& target,
                                        const BeamOptions& options, const SearchHooks& hooks) {
  return BeamSearcher(kernel, target, options, hooks).Run();
}

}  // namespace quern
