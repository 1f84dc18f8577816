#include "codegen/fill_blocks.h"

#include <algorithm>

#include "rewrite/build.h"
#include "rewrite/linear.h"
#include "rewrite/simplify.h"

namespace quern {
namespace {

// Elements (or groups) of a row of the blocks: a vector of 32-bit elements on the widest machines,
// two or four registers on others.
constexpr int64_t kBlock = 16;
constexpr int64_t kLeastRows = 4;

// How the operand of a STAGE moves along the axes that matter for packing it.
struct Operand {
  const UOp* index = nullptr;
  LinearForm form;
  const UOp* group = nullptr;  // the buffer's last dimension, if a matrix instruction sums it
  const UOp* rows = nullptr;   // the last one before that, if it is a register axis
  bool by_group = false;       // groups are contiguous in memory, too
};

Operand Describe(const Item& item) {
  Operand operand;
  operand.index = item.node->src(0)->src(0);
  operand.form = ToLinear(operand.index->src(1));
  std::vector<const UOp*> registers = item.output_registers;
  if (!registers.empty() && registers.back()->range_type() == AxisType::kWarp) {
    operand.group = registers.back();
    operand.by_group = operand.form.CoefficientOf(operand.group) == 1;
    registers.pop_back();
  }
  if (!registers.empty()) operand.rows = registers.back();
  return operand;
}

// The loop along which the operand, by groups if there are any, is contiguous while its rows lie
// apart; nullptr if there is none.
const UOp* LoopOfBlocks(const RangeSets& sets, const Item& item, const Operand& operand) {
  if (operand.rows == nullptr) return nullptr;
  if (operand.group == nullptr ? item.lane != nullptr : !operand.by_group) return nullptr;
  const int64_t unit = operand.group == nullptr ? 1 : operand.group->range_size();
  const int64_t count = operand.rows->range_size();
  if (count < kLeastRows || (count & (count - 1)) != 0) return nullptr;
  if (operand.form.CoefficientOf(operand.rows) <= unit) return nullptr;
  const UOp* across = nullptr;
  for (const UOp* r : item.loops) {
    if (operand.form.CoefficientOf(r) == unit && r->range_size() >= kBlock) across = r;
  }
  for (const auto& [term, coefficient] : operand.form.terms) {
    for (const UOp* r : {operand.rows, operand.group, across}) {
      if (r != nullptr && term != r && sets.Depends(term, r)) return nullptr;
    }
  }
  return across;
}

// `fill` with `along` in place of the loop `across`, which runs over `range` now.
FillPart Part(UOpGraph& g, const Item& item, const UOp* fill, const UOp* across, const UOp* range,
              const UOp* along, const UOp* lane) {
  FillPart part = {lane, item.loops, Substitute(g, fill, {{across}}, {{along}})};
  std::replace(part.loops.begin(), part.loops.end(), across, range);
  return part;
}

// Adds the part of as many blocks as need no masks between their elements, and returns how many
// iterations of `across` it does.
int64_t AddBlocks(const FillContext& context, const Item& item, const Operand& operand,
                  const UOp* fill, const UOp* across, std::vector<FillPart>& parts) {
  UOpGraph& g = context.graph;
  const UOp* inner = Range(g, kBlock, context.unused_axis(), AxisType::kUpcast);
  const int64_t most = across->range_size() / kBlock;
  for (int64_t blocks = most; blocks > 0 && blocks >= most - 1; --blocks) {
    const UOp* outer = Range(g, blocks, across->range_axis(), across->range_type());
    const UOp* along = Add(g, Mul(g, outer, IndexConst(g, kBlock)), inner);
    if (operand.index->source_count == 3) {
      const UOp* gate = Simplify(g, Substitute(g, operand.index->src(2), {{across}}, {{along}}));
      const RangeSets sets(gate);
      if (sets.Depends(gate, inner)) continue;
      if (operand.group != nullptr && sets.Depends(gate, operand.group)) continue;
    }
    parts.push_back(Part(g, item, fill, across, outer, along, operand.rows));
    return blocks * kBlock;
  }
  return 0;
}

}  // namespace

std::vector<FillPart> CutIntoBlocks(const FillContext& context, const Item& item, const UOp* fill) {
  FillPart whole = {item.lane, item.loops, fill};
  if (item.node->src(0)->op != Op::kLoad) return {whole};
  const Operand operand = Describe(item);
  if (operand.by_group) {
    whole.lane = operand.group;
  } else if (operand.group != nullptr && operand.rows != nullptr &&
             operand.form.CoefficientOf(operand.rows) == 1) {
    whole.lane = operand.rows;
  }
  const UOp* across = LoopOfBlocks(context.sets, item, operand);
  if (across == nullptr) return {whole};
  std::vector<FillPart> parts;
  const int64_t done = AddBlocks(context, item, operand, fill, across, parts);
  if (done == 0) return {whole};
  if (const int64_t left = across->range_size() - done; left > 0) {
    UOpGraph& g = context.graph;
    const UOp* rest = Range(g, left, across->range_axis(), across->range_type());
    const UOp* along = Add(g, rest, IndexConst(g, done));
    parts.push_back(Part(g, item, fill, across, rest, along, whole.lane));
  }
  return parts;
}

}  // namespace quern
