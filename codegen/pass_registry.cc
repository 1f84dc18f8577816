#include "codegen/pass_registry.h"

#include <algorithm>
#include <chrono>

#include "rewrite/concat.h"
#include "rewrite/verify.h"

namespace quern {
namespace {

absl::Status Verify(const Pass& pass, const UOp* sink) {
  if (pass.result == Pass::Form::kStatements) return VerifyLowered(sink);
  if (sink->source_count == 0 || sink->src(0)->op != Op::kSink) return VerifyKernel(sink);
  for (const UOp* phase : sink->src()) {
    if (absl::Status status = VerifyKernel(phase); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<const UOp*> RunPasses(std::span<const Pass> passes, PassContext& context,
                                     const UOp* sink, const PassOptions& options) {
  using Clock = std::chrono::steady_clock;
  for (const Pass& pass : passes) {
    const bool off = std::find(options.disabled.begin(), options.disabled.end(), pass.name) !=
                     options.disabled.end();
    if (off) continue;
    const Clock::time_point start = Clock::now();
    const UOp* after = pass.run(context, sink);
    if (options.trace) {
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      options.trace(pass, sink, after, ms);
    }
    if (options.verify) {
      if (absl::Status status = Verify(pass, after); !status.ok()) {
        return absl::InternalError(Concat("pass ", pass.name, ": ", status.message()));
      }
    }
    sink = after;
  }
  return sink;
}

}  // namespace quern
