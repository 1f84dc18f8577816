#include <algorithm>

#include "codegen/lower.h"
#include "codegen/matrix_instructions.h"
#include "optimizer/heuristic_steps.h"

namespace quern {
namespace {

bool HasTileInstructions(const Target& target) {
  const std::span<const MatrixInstruction> all = MatrixInstructions();
  return std::any_of(all.begin(), all.end(), [&](const MatrixInstruction& m) {
    return m.tile > 1 && target.Has(std::string(m.feature));
  });
}

// The product whose axis a matrix instruction sums.
const StatementAccesses* FindProduct(const RangeSets& sets,
                                     const std::vector<StatementAccesses>& all) {
  for (const StatementAccesses& reduce : all) {
    if (reduce.node->op != Op::kReduce || !IsProduct(sets, reduce)) continue;
    for (const UOp* r : reduce.node->src().subspan(1)) {
      if (r->range_type() == AxisType::kWarp) return &reduce;
    }
  }
  return nullptr;
}

// Blocks of `amount` of an output loop go into registers, and two of them if that divides it.
// Returns how many times the loop still runs (it is gone after 1), 0 if it has too few iterations.
int64_t TakeBlocks(Scheduler& s, int axis, int64_t amount) {
  constexpr int64_t kMostPadding = 4;  // a quarter of the work
  const int64_t size = s.axes()[axis].size;
  const int64_t padded = (size + amount - 1) / amount * amount;
  if (size < amount || (padded - size) * kMostPadding > size) return 0;
  if (padded != size && !Try(s, ActionKind::kPadTo, axis, amount)) return 0;
  if (!Try(s, ActionKind::kUpcast, axis, amount)) return 0;
  const int64_t blocks = padded / amount;
  return blocks % 2 == 0 && Try(s, ActionKind::kUpcast, axis, 2) ? blocks / 2 : blocks;
}

// Tiles read packed columns only: the loop over rows, or each core's part of it, becomes LOCAL.
bool PackColumns(Scheduler& s, int rows_axis) {
  const Axis& rows = s.axes()[rows_axis];
  if (rows.type != AxisType::kLoop || rows.reduce) return false;
  const int64_t cores = s.target().cores;
  int64_t others = 1;
  for (const Axis& a : s.axes()) {
    if (a.type == AxisType::kLoop && !a.reduce && a.range != rows.range) others *= a.size;
  }
  const bool divides = others < cores && rows.size % cores == 0 && rows.size > cores;
  return Try(s, ActionKind::kLocal, rows_axis, divides ? rows.size / cores : 0);
}

// Rows and columns of tiles for the sum over reduce axis `number`; two by two of them keep their
// accumulators and factors in the eight tile registers.
bool TileProduct(Scheduler& s, int number) {
  const int axis = s.reduce_axes()[number];
  if (!Try(s, ActionKind::kTensorCore, number, 0)) {
    // Whole steps of the widest group.
    if (!Try(s, ActionKind::kPadTo, axis, 4) || !Try(s, ActionKind::kTensorCore, number, 0)) {
      return false;
    }
  }
  const RangeSets sets(s.kernel());
  const std::vector<StatementAccesses> all = CollectAccesses(s.kernel());
  const StatementAccesses* reduce = FindProduct(sets, all);
  const StatementAccesses* store = FindStore(all);
  if (reduce == nullptr || store == nullptr) return false;
  const absl::StatusOr<MatrixFactors> factors =
      MatchMatrixProduct(reduce->node->src(0), s.target());
  if (!factors.ok()) return false;
  const MatrixInstruction& m = MatrixInstructions()[static_cast<size_t>(factors->instruction)];
  const UOp* columns = nullptr;
  for (const UOp* r : sets.Members(sets.Of(reduce->node))) {
    if (r->range_type() != AxisType::kLoop) continue;
    if (PatternAlong(*store, r).store_contiguous) columns = r;
  }
  if (columns == nullptr) return false;
  const bool a_has_columns = sets.Depends(factors->a, columns);
  const UOp* rows_factor = a_has_columns ? factors->b : factors->a;
  const UOp* columns_factor = a_has_columns ? factors->a : factors->b;
  if (sets.Depends(rows_factor, columns)) return false;
  const UOp* rows = nullptr;
  for (const UOp* r : sets.Members(sets.Of(reduce->node))) {
    const bool loop = r->range_type() == AxisType::kLoop && r != columns;
    if (!loop || !sets.Depends(rows_factor, r) || sets.Depends(columns_factor, r)) continue;
    if (rows == nullptr || r->range_size() > rows->range_size()) rows = r;
  }
  if (rows == nullptr) return false;
  // The later axis first, so that the number of the earlier one stays.
  const int first = AxisNumber(s, columns);
  const int second = AxisNumber(s, rows);
  const int64_t lanes = m.lanes;  // A tile has as many rows.
  const bool rows_first = second > first;
  const int64_t ends = TakeBlocks(s, rows_first ? second : first, lanes);
  const int64_t begins = ends == 0 ? 0 : TakeBlocks(s, rows_first ? first : second, lanes);
  const int64_t columns_left = rows_first ? begins : ends;
  if (begins == 0 || (rows_first ? ends : begins) == 1) return false;
  return PackColumns(s, rows_first && columns_left == 1 ? second - 1 : second);
}

}  // namespace

bool TileMatrixInstructions(Scheduler& s) {
  if (!HasTileInstructions(s.target())) return false;
  for (int i = 0; i < static_cast<int>(s.reduce_axes().size()); ++i) {
    Scheduler trial = s;
    if (!TileProduct(trial, i)) continue;
    // Whether the factors then lie as tiles want them shows when the kernel is lowered.
    UOpGraph graph;
    const absl::StatusOr<LoweredKernel> lowered =
        Lower(graph, graph.Import(trial.kernel()), s.target());
    if (!lowered.ok()) continue;
    const std::vector<const UOp*> order = Toposort(lowered->sink);
    const bool uses =
        std::any_of(order.begin(), order.end(), [](const UOp* u) { return u->op == Op::kTile; });
    if (!uses) continue;
    s = std::move(trial);
    return true;
  }
  return false;
}

}  // namespace quern
