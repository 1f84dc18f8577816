#include "rewrite/engine.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace quern {
namespace {

// A rewrite makes a node simpler or moves it towards its normal order, so a small number per node
// is enough for any terminating set of rules.
constexpr int64_t kRewritesPerNode = 200;
constexpr int64_t kLeastLimit = 100000;
constexpr size_t kRemembered = 32;

class Rewriter {
 public:
  Rewriter(UOpGraph& g, const RuleSet& rules, BoundsAnalysis& bounds, const RewriteOptions& options)
      : graph_(g), rules_(rules), options_(options), context_{g, bounds, options.user} {
    const int64_t size = static_cast<int64_t>(g.size());
    limit_ = options.limit >= 0 ? options.limit : std::max(kLeastLimit, size * kRewritesPerNode);
    results_.resize(g.size() + g.size() / 2 + 64, nullptr);
  }

  absl::StatusOr<const UOp*> Run(const UOp* root) {
    Push(root);
    while (!stack_.empty()) {
      if (count_ > limit_) return LoopError();
      Step();
    }
    return results_[root->id];
  }

 private:
  // One node on its way to its normal form. `current` is what it has become so far; everything it
  // has been is in `aliases_` from `first_alias` on, so that each spelling is looked up later.
  struct Frame {
    const UOp* current;
    uint32_t next_source;
    uint32_t first_alias;
    bool tried;  // pre-order: no rule applies to `current` as it is
  };

  const UOp* ResultOf(const UOp* u) const {
    return u->id < results_.size() ? results_[u->id] : nullptr;
  }
  void SetResult(const UOp* u, const UOp* result) {
    if (u->id >= results_.size()) results_.resize(std::max<size_t>(u->id + 1, results_.size() * 2));
    results_[u->id] = result;
  }

  void Push(const UOp* u) {
    stack_.push_back({u, 0, static_cast<uint32_t>(aliases_.size()), false});
    aliases_.push_back(u);
  }

  void Become(const UOp* u) {
    stack_.back().current = u;
    stack_.back().next_source = 0;
    stack_.back().tried = false;
    aliases_.push_back(u);
  }

  void Finish(const UOp* result) {
    const Frame& frame = stack_.back();
    for (size_t i = frame.first_alias; i < aliases_.size(); ++i) SetResult(aliases_[i], result);
    aliases_.resize(frame.first_alias);
    SetResult(result, result);
    stack_.pop_back();
  }

  const UOp* Apply(const UOp* u) {
    if (options_.stop_after >= 0 && count_ >= options_.stop_after) return nullptr;
    std::string_view rule;
    const UOp* result = rules_.Apply(u, context_, &rule);
    if (result == nullptr || result == u) return nullptr;
    QUERN_CHECK_MSG(result->dtype == u->dtype, "a rule keeps the dtype");
    recent_[count_ % kRemembered] = rule;
    ++count_;
    if (options_.observer != nullptr) options_.observer->OnRewrite(rule, u, result);
    return result;
  }

  // One visit of the node on top of the stack.
  void Step() {
    Frame& frame = stack_.back();
    const UOp* u = frame.current;
    if (const UOp* done = ResultOf(u)) return Finish(done);
    if (options_.order == RewriteOptions::Order::kPreOrder && !frame.tried) {
      if (const UOp* result = Apply(u)) return Become(result);
      frame.tried = true;
    }
    while (frame.next_source < u->source_count) {
      const UOp* source = u->sources[frame.next_source];
      if (ResultOf(source) == nullptr) return Push(source);
      ++frame.next_source;
    }
    bool changed = false;
    sources_.clear();
    for (const UOp* s : u->src()) {
      const UOp* result = ResultOf(s);
      changed |= result != s;
      sources_.push_back(result);
    }
    if (changed) {
      // In pre-order a rule has had its chance; the rebuilt node is not looked at again.
      const UOp* rebuilt = graph_.Make(u->op, u->dtype, sources_, u->arg);
      if (options_.order == RewriteOptions::Order::kPreOrder) return Finish(rebuilt);
      return Become(rebuilt);
    }
    if (options_.order == RewriteOptions::Order::kPostOrder) {
      if (const UOp* result = Apply(u)) return Become(result);
    }
    Finish(u);
  }

  absl::Status LoopError() const {
    absl::InlinedVector<std::string, 8> names;
    for (std::string_view rule : recent_) {
      std::string name(rule);
      if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(std::move(name));
      }
    }
    return absl::ResourceExhaustedError(
        absl::StrCat("no normal form after ", limit_,
                     " rewrites; the rules that fired last: ", absl::StrJoin(names, ", ")));
  }

  UOpGraph& graph_;
  const RuleSet& rules_;
  const RewriteOptions& options_;
  RuleContext context_;
  int64_t limit_ = 0;
  int64_t count_ = 0;
  std::vector<const UOp*> results_;
  std::vector<Frame> stack_;
  std::vector<const UOp*> aliases_;
  absl::InlinedVector<const UOp*, 16> sources_;
  std::array<std::string_view, kRemembered> recent_{};
};

}  // namespace

absl::StatusOr<const UOp*> Rewrite(UOpGraph& g, const UOp* root, const RuleSet& rules,
                                   BoundsAnalysis& bounds, const RewriteOptions& options) {
  return Rewriter(g, rules, bounds, options).Run(root);
}

}  // namespace quern
