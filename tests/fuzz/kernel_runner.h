#ifndef QUERN_TESTS_FUZZ_KERNEL_RUNNER_H_
#define QUERN_TESTS_FUZZ_KERNEL_RUNNER_H_

#include <memory>
#include <string>
#include <vector>

#include "codegen/compile.h"
#include "codegen/lower.h"
#include "rewrite/concat.h"
#include "rewrite/interpret.h"
#include "rewrite/pseudo_code.h"
#include "rewrite/verify.h"
#include "runtime/cpu_device.h"

namespace quern {

inline KernelImage MakeImage(const LoweredKernel& lowered, const CompiledKernel& compiled) {
  KernelImage image;
  image.object = compiled.object;
  for (const KernelParam& p : lowered.params) {
    image.params.push_back({.slot = p.slot,
                            .dtype = p.dtype,
                            .elements = p.elements,
                            .written = p.written,
                            .read = p.read,
                            .temporary = p.temporary,
                            .kept = p.kept});
  }
  for (size_t i = 0; i < lowered.phases.size(); ++i) {
    image.phases.push_back({.symbol = compiled.symbols[i],
                            .threads = lowered.phases[i].threads,
                            .scratch_bytes = lowered.phases[i].scratch_bytes,
                            .once = lowered.phases[i].once,
                            .part_by_part = lowered.phases[i].part_by_part});
  }
  return image;
}

/// Lowers for `target`, compiles and loads a scheduled kernel, with every verifier switched on.
inline absl::StatusOr<std::unique_ptr<CpuKernel>> BuildKernel(UOpGraph& g, const UOp* scheduled,
                                                              const Target& target,
                                                              CpuDevice& device) {
  PassOptions passes;
  passes.verify = true;
  passes.stream_bytes = 1;  // as if each output was larger than the caches
  const absl::StatusOr<LoweredKernel> lowered = Lower(g, scheduled, target, passes);
  if (!lowered.ok()) return lowered.status();
  if (absl::Status s = VerifyExpanded(lowered->sink); !s.ok()) return s;
  CompileOptions options;
  options.verify = true;
  const absl::StatusOr<CompiledKernel> compiled = CompileForCpu(*lowered, target, options);
  if (!compiled.ok()) return compiled.status();
  return device.Load(MakeImage(*lowered, *compiled));
}

/// Runs a kernel on the views of its slots.
inline absl::Status RunKernel(CpuKernel& kernel, const std::vector<BufferView>& views) {
  std::vector<void*> pointers;
  for (const ImageParam& p : kernel.image().params) {
    if (p.temporary) continue;
    const BufferView* found = nullptr;
    for (const BufferView& v : views) {
      if (v.slot == p.slot) found = &v;
    }
    if (found == nullptr) return absl::InternalError(Concat("no buffer has the slot ", p.slot));
    pointers.push_back(found->data);
  }
  kernel.Run(pointers);
  return absl::OkStatus();
}

/// The interpreter on any form of a kernel, temporaries of lowering included.
inline absl::Status InterpretWithTemporaries(const UOp* sink, std::vector<BufferView> views) {
  std::vector<std::vector<std::byte>> temporaries;
  for (const KernelParam& p : CollectParams(sink)) {
    if (!p.temporary) continue;
    temporaries.emplace_back(p.bytes(), std::byte{0xff});
    views.push_back({p.slot, temporaries.back().data(), p.bytes()});
  }
  return Interpret(sink, views);
}

/// Which pass of lowering broke a kernel: `check` runs the graph after each pass and says what is
/// wrong with its results, "" if nothing is.
template <typename Check>
std::string FindFaultyPass(UOpGraph& g, const UOp* scheduled, const Target& target, Check check) {
  std::string found;
  PassOptions options;
  options.trace = [&](const Pass& pass, const UOp* before, const UOp* after, double) {
    if (!found.empty()) return;
    const std::string wrong = check(after);
    if (wrong.empty()) return;
    found = Concat("the first wrong pass is ", pass.name, ": ", wrong, "\n--- before it\n",
                   PseudoCode(before), "--- after it\n", PseudoCode(after));
  };
  const absl::StatusOr<LoweredKernel> lowered = Lower(g, scheduled, target, options);
  if (!found.empty()) return found;
  if (!lowered.ok()) return Concat("lowering: ", lowered.status().message());
  return Concat(
      "every pass gives the right values; what is left is the machine code\n--- lowered\n",
      PseudoCode(lowered->sink));
}

}  // namespace quern

#endif  // QUERN_TESTS_FUZZ_KERNEL_RUNNER_H_
