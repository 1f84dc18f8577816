#include "tensor/constants.h"

#include <algorithm>

#include "rewrite/concat.h"
#include "tensor/fusion.h"
#include "tensor/lower.h"

namespace quern::notation {
namespace {

absl::Status MarkInputs(const std::vector<std::string>& constants,
                        std::vector<TensorInfo>& tensors) {
  for (const std::string& name : constants) {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const TensorInfo& t) { return t.name == name; });
    if (found == tensors.end() || found->role != TensorRole::kInput) {
      return absl::InvalidArgumentError(
          Concat("constant ", name, ": the formula reads no input of this name",
                 found == tensors.end() ? "" : ", it writes the tensor"));
    }
    found->constant = true;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MarkConstants(const Formula& formula, const std::vector<std::string>& constants,
                           FormulaMeaning& meaning) {
  std::vector<TensorInfo>& tensors = meaning.names.tensors;
  if (absl::Status s = MarkInputs(constants, tensors); !s.ok()) return s;
  if (constants.empty()) return absl::OkStatus();
  const std::vector<bool> none(formula.statements.size(), false);
  for (size_t i = 0; i < formula.statements.size(); ++i) {
    TensorInfo& written = tensors[meaning.names.written[i]];
    if (written.role != TensorRole::kIntermediate) continue;
    UOpGraph graph;
    absl::StatusOr<const UOp*> sink =
        LowerStatement(graph, formula, meaning, static_cast<int>(i), none);
    if (!sink.ok()) continue;  // It will be reported where its kernel is made.
    const std::vector<int64_t> loads = LoadedSlots(*sink);
    written.constant = !loads.empty() && std::all_of(loads.begin(), loads.end(), [&](int64_t t) {
      return tensors[t].constant;
    });
  }
  return absl::OkStatus();
}

}  // namespace quern::notation
