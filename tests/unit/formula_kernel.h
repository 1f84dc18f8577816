#ifndef QUERN_TESTS_UNIT_FORMULA_KERNEL_H_
#define QUERN_TESTS_UNIT_FORMULA_KERNEL_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/lower.h"
#include "optimizer/beam.h"
#include "optimizer/build_kernel.h"
#include "rewrite/check.h"
#include "rewrite/concat.h"
#include "rewrite/interpret.h"
#include "runtime/aligned_memory.h"
#include "runtime/cpu_device.h"
#include "runtime/random_data.h"
#include "tensor/notation.h"

namespace quern {

/// The first kernel of a formula, and the graph that owns it.
struct FormulaKernel {
  std::shared_ptr<UOpGraph> graph;
  const UOp* sink = nullptr;
};

/// `sizes` as in "i=4,k=16", `dtypes` as in "A=bf16,B=i8", `shape` as in "X=3,8". QUERN_CHECKs that
/// the formula is right.
inline FormulaKernel KernelOf(std::string_view formula, std::string_view sizes,
                              std::string_view dtypes = "", std::string_view shape = "") {
  NotationOptions options;
  if (!sizes.empty()) QUERN_CHECK(ParseSizes(sizes, options).ok());
  if (!dtypes.empty()) QUERN_CHECK(ParseDTypes(dtypes, options).ok());
  if (!shape.empty()) QUERN_CHECK(ParseShape(shape, options).ok());
  absl::StatusOr<Program> program = ParseNotation(formula, options);
  QUERN_CHECK_MSG(program.ok(), std::string(program.status().message()).c_str());
  return {program->graph, program->kernels.at(0).sink};
}

inline FormulaKernel MatmulKernel(int64_t i, int64_t j, int64_t k) {
  return KernelOf("C[i,j] = sum[k](A[i,k]*B[k,j])", Concat("i=", i, ",j=", j, ",k=", k));
}

/// The buffers of a kernel: inputs random, outputs poisoned; the same for the same seed.
class KernelBuffers {
 public:
  explicit KernelBuffers(const UOp* kernel, uint64_t seed = 1) : params_(CollectParams(kernel)) {
    for (const KernelParam& p : params_) {
      AlignedMemory memory = AllocateAligned(p.bytes());
      QUERN_CHECK(memory != nullptr);
      if (p.read) {
        FillRandom(p.dtype.scalar, p.elements, seed + static_cast<uint64_t>(p.slot), memory.get());
      } else {
        FillPoison(p.dtype.scalar, p.elements, memory.get());
      }
      memory_[p.slot] = std::move(memory);
    }
  }

  /// The pointers that a loaded kernel wants.
  std::vector<void*> For(const KernelImage& image) const {
    std::vector<void*> pointers;
    for (const ImageParam& p : image.params) {
      if (!p.temporary) pointers.push_back(memory_.at(p.slot).get());
    }
    return pointers;
  }
  std::vector<BufferView> Views() const {
    std::vector<BufferView> views;
    for (const KernelParam& p : params_) {
      views.push_back({p.slot, memory_.at(p.slot).get(), p.bytes()});
    }
    return views;
  }
  void* data(int64_t slot) const { return memory_.at(slot).get(); }

  /// "" if all buffers agree within the tolerance, else what differs.
  std::string Compare(const KernelBuffers& expected, double tolerance) const {
    for (const KernelParam& p : params_) {
      const Difference d =
          CompareData(p.dtype.scalar, p.elements, expected.data(p.slot), data(p.slot));
      if (d.max_rel <= tolerance) continue;
      return Concat("buffer ", p.slot, " differs by ", d.max_rel, " at element ", d.worst);
    }
    return "";
  }

 private:
  std::vector<KernelParam> params_;
  std::map<int64_t, AlignedMemory> memory_;
};

/// Compiles a schedule for `target`, runs it on `device` and compares it with the interpreter's
/// numbers for `plain`. "" if all is well.
inline std::string RunAgainstInterpreter(UOpGraph& graph, const UOp* plain, const UOp* scheduled,
                                         const Target& target, CpuDevice& device) {
  BuildOptions options;
  options.passes.verify = true;
  options.compile.verify = true;
  absl::StatusOr<BuiltKernel> built = BuildKernel(graph, scheduled, target, options);
  if (!built.ok()) return std::string(built.status().message());
  absl::StatusOr<std::unique_ptr<CpuKernel>> kernel = device.Load(std::move(built->image));
  if (!kernel.ok()) return std::string(kernel.status().message());
  const KernelBuffers expected(plain);
  const KernelBuffers actual(plain);
  if (absl::Status s = Interpret(plain, expected.Views()); !s.ok()) {
    return std::string(s.message());
  }
  (*kernel)->Run(actual.For((*kernel)->image()));
  return actual.Compare(expected, ToleranceFor(plain));
}

}  // namespace quern

#endif  // QUERN_TESTS_UNIT_FORMULA_KERNEL_H_
