#ifndef QUERN_CODEGEN_PASS_REGISTRY_H_
#define QUERN_CODEGEN_PASS_REGISTRY_H_

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "rewrite/graph.h"
#include "rewrite/simplify.h"
#include "rewrite/target.h"

namespace quern {

/// What passes may look at besides the graph.
struct PassContext {
  UOpGraph& graph;
  const Target& target;
  SimplifyOptions simplify;
  std::optional<int64_t> stream_bytes;
};

/// One step of lowering. Passes are plain functions in a table (lower.cc); `verify` says which form
/// the result has.
struct Pass {
  enum class Form : uint8_t { kKernel, kStatements };
  std::string_view name;
  std::string_view purpose;
  const UOp* (*run)(PassContext& context, const UOp* sink);
  Form result = Form::kKernel;
};

/// Called after each pass with the graph before and after and the time it took.
using PassTrace =
    std::function<void(const Pass& pass, const UOp* before, const UOp* after, double ms)>;

struct PassOptions {
  std::vector<std::string> disabled;  ///< names of passes to leave out
  bool verify = false;                ///< check the graph after each pass
  SimplifyOptions simplify;           ///< for every pass that applies the rule tables
  /// Outputs from this size on are written past the caches; else the target's caches decide.
  std::optional<int64_t> stream_bytes;
  PassTrace trace;
};

/// The one place that runs passes: each is timed, traced and, with `verify`, checked. An error
/// names the pass.
absl::StatusOr<const UOp*> RunPasses(std::span<const Pass> passes, PassContext& context,
                                     const UOp* sink, const PassOptions& options);

}  // namespace quern

#endif  // QUERN_CODEGEN_PASS_REGISTRY_H_
