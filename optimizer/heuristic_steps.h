#ifndef QUERN_OPTIMIZER_HEURISTIC_STEPS_H_
#define QUERN_OPTIMIZER_HEURISTIC_STEPS_H_

#include "optimizer/access_pattern.h"
#include "optimizer/decisions.h"
#include "optimizer/scheduler.h"
#include "rewrite/range_sets.h"

namespace quern {

// What the steps of the heuristic share (heuristic_analysis.cc).

/// The number of the axis with this range, among all or among the reduce axes; -1 if there is none.
int AxisNumber(const Scheduler& s, const UOp* range);
int ReduceNumber(const Scheduler& s, const UOp* range);

/// Applies one action if it is legal.
bool Try(Scheduler& s, ActionKind kind, int axis, int64_t amount);

/// Pads the axis of `range` if its size is no multiple. True if it is one now.
bool PadTo(Scheduler& s, const UOp* range, int64_t multiple);

/// Cuts `amount` steps from a loop by an action, padding the loop if that does not divide it.
/// Leaves all as it was if one of the two is refused.
bool PadAndApply(Scheduler& s, ActionKind kind, const UOp* range, int64_t amount);

/// Lanes of one register for the widest element that the statement touches.
int64_t VectorLanes(const Scheduler& s, const StatementAccesses& accesses);

/// Whether a statement has an axis in registers already, that of a matrix instruction aside.
bool HasRegisterAxis(const RangeSets& sets, const UOp* node);

/// How many outputs of a REDUCE use an element of one of its loads.
int64_t TimesUsed(const RangeSets& sets, const StatementAccesses& reduce, const UOp* load);

/// Whether a REDUCE is like a matrix product: every load is used again along output loops, often
/// enough to be packed.
bool IsProduct(const RangeSets& sets, const StatementAccesses& reduce);

/// A range and how well a statement vectorises along it; higher is better, below 0 not at all.
struct BestAxis {
  const UOp* range = nullptr;
  int score = -1000;
};
BestAxis BestReduceLane(const StatementAccesses& reduce);
/// Among the output loops of a REDUCE (whose results `store` stores) or of a STORE itself.
BestAxis BestOutputLane(const RangeSets& sets, const StatementAccesses& statement,
                        const StatementAccesses* store);

/// The first of `amounts` that divides `size`, or 0.
int64_t Dividing(int64_t size, std::initializer_list<int64_t> amounts);

const StatementAccesses* FindStore(const std::vector<StatementAccesses>& all);

/// The ranges that masks of loads depend on.
uint64_t MaskedRanges(const RangeSets& sets, const UOp* kernel);

/// Of all buffers of a kernel.
int64_t BufferBytes(const UOp* kernel);
/// Whether there are several cores, and the kernel takes long enough, by a rough guess, that what
/// they save is more than it costs to set them to work.
bool PaysThreads(const Scheduler& s);
/// Whether threads can divide a loop of this size, padded where it must be.
bool CanDivide(int64_t size, int64_t threads);

/// An operand of a product whose lanes may be read where they lie (optimizer/reads_in_place.h),
/// after registers have their tile.
struct LanesInPlace {
  const UOp* load = nullptr;  ///< its INDEX; nullptr: there is none
  const UOp* rows = nullptr;  ///< the loop over tiles that read it again
  bool all = false;           ///< all of it stays in the second-level cache
  bool far = false;           ///< its buffer is larger than that
  bool pays = false;          ///< packing it is believed to cost more
};
/// In heuristic_caches.cc.
LanesInPlace FindLanesInPlace(const Scheduler& s, const RangeSets& sets,
                              const StatementAccesses& reduce);

// The steps, in their order.

/// Instructions on tiles, if the target has them and the kernel is a product that they fit; else
/// false (heuristic_matrix_tiles.cc).
bool TileMatrixInstructions(Scheduler& s);
/// Matrix instructions, if the kernel is a product that fits.
void UseMatrixInstructions(Scheduler& s, Decisions& decisions);
/// Lanes along a reduced axis whose operands are contiguous there; blocks of a long reduction with
/// few outputs to the cores.
void GroupReductions(Scheduler& s, Decisions& decisions);
/// Lanes and rows of outputs in registers (heuristic_tiles.cc).
void TileRegisters(Scheduler& s, Decisions& decisions);
/// Several outputs for a reduction with lanes along the reduced axis.
void TileDotProducts(Scheduler& s, Decisions& decisions);
/// Rows at once: two where each is combined and then read again, eight where they are only added,
/// and come from memory.
void TakeSeveralRows(Scheduler& s, Decisions& decisions);
/// Several steps of writing a row that was reduced before; none unless `decisions` say so.
void TakeStoresTogether(Scheduler& s, Decisions& decisions);
/// Short reduced axes, such as the window of a convolution, as copies.
void UnrollSmallReductions(Scheduler& s, Decisions& decisions);
/// A few steps of a register tile in one pass.
void UnrollTiles(Scheduler& s, Decisions& decisions);
/// Puts the longest loop of a product's sum innermost, if masks do not follow it: the channels of a
/// convolution inside its window, so that borders are met outside of it (heuristic_sums.cc).
void OrderSums(Scheduler& s, Decisions& decisions);
/// Moves a reduction over rows outside the columns, so that memory is read in the order in which it
/// lies while a tile of sums stays in cache (heuristic_streams.cc).
void StreamRows(Scheduler& s, Decisions& decisions);
/// Packs the operand that every row of tiles reads again (heuristic_caches.cc).
void TileCaches(Scheduler& s, Decisions& decisions);
/// Cuts a sum into blocks whose packed panels stay in the second-level cache, where those of the
/// whole sum would not. If nothing is done to the sum before it is stored, the loop over blocks
/// goes outermost and the output holds what is there of the sums; else it goes inside that over
/// panels, and a buffer does (heuristic_sums.cc).
void BlockSums(Scheduler& s, Decisions& decisions);
/// Divides an outer loop among the cores.
void DivideAmongThreads(Scheduler& s, Decisions& decisions);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_HEURISTIC_STEPS_H_
