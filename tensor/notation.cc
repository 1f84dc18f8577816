#include "tensor/notation.h"

#include <memory>
#include <utility>

#include "rewrite/kernel_flags.h"
#include "tensor/constants.h"
#include "tensor/fusion.h"
#include "tensor/groups.h"
#include "tensor/lower.h"
#include "tensor/parser.h"
#include "tensor/shapes.h"

namespace quern {

absl::StatusOr<Program> ParseNotation(std::string_view text, const NotationOptions& options) {
  using namespace notation;  // NOLINT(google-build-using-namespace)
  absl::StatusOr<Formula> formula = ParseFormula(text);
  if (!formula.ok()) return formula.status();
  absl::StatusOr<FormulaMeaning> meaning = ResolveFormula(*formula, options);
  if (!meaning.ok()) return meaning.status();
  if (absl::Status s = MarkConstants(*formula, options.constants, *meaning); !s.ok()) return s;
  std::vector<bool> inlined(formula->statements.size(), false);
  if (options.fuse) {
    absl::StatusOr<std::vector<bool>> chosen = ChooseInlined(*formula, *meaning);
    if (!chosen.ok()) return chosen.status();
    inlined = *std::move(chosen);
  }
  std::vector<StatementGroup> groups;
  if (options.fuse && options.groups) groups = ChooseGroups(*formula, *meaning, inlined);
  std::vector<const StatementGroup*> group_of(formula->statements.size(), nullptr);
  for (const StatementGroup& group : groups) {
    for (int i : group.statements) group_of[i] = &group;
  }
  // Statements that have no kernel, nor a tensor in memory.
  std::vector<bool> inside = inlined;
  for (size_t i = 0; i < inside.size(); ++i) {
    if (group_of[i] != nullptr && group_of[i]->statements.back() != static_cast<int>(i)) {
      inside[i] = true;
    }
  }

  Program program;
  program.graph = std::make_shared<UOpGraph>();
  // Tensors without a buffer vanish; slots stay places in the list.
  std::vector<int64_t> slot(meaning->names.tensors.size(), -1);
  for (size_t t = 0; t < slot.size(); ++t) {
    TensorInfo& info = meaning->names.tensors[t];
    const int definition = meaning->names.definition[t];
    if (definition >= 0 && inside[definition]) continue;
    slot[t] = static_cast<int64_t>(program.tensors.size());
    info.slot = slot[t];
    program.tensors.push_back(info);
  }
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i]) continue;
    absl::StatusOr<const UOp*> sink =
        group_of[i] != nullptr
            ? LowerGroup(*program.graph, *formula, *meaning, *group_of[i], inlined)
            : LowerStatement(*program.graph, *formula, *meaning, static_cast<int>(i), inlined);
    if (!sink.ok()) return sink.status();
    KernelInfo kernel;
    kernel.sink = *sink;
    for (int64_t s : LoadedSlots(*sink)) {
      if (program.tensors[s].constant) {
        kernel.sink = MarkConstantSlot(*program.graph, kernel.sink, s);
      }
    }
    kernel.output = slot[meaning->names.written[i]];
    kernel.name = program.tensors[kernel.output].name;
    kernel.inputs = LoadedSlots(*sink);
    program.kernels.push_back(std::move(kernel));
  }
  return program;
}

}  // namespace quern
