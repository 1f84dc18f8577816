#ifndef QUERN_CODEGEN_PREFETCH_PANELS_H_
#define QUERN_CODEGEN_PREFETCH_PANELS_H_

#include "rewrite/graph.h"
#include "rewrite/target.h"

namespace quern {

/// Fetches the next panel of an operand while this one is used.
///
///     for panel:                     for panel:
///       for rows:                      for rows:
///         for k: … p[panel, k]    →      for k: … p[panel, k]; fetch p[panel + 1, …]
///
/// All rows read a panel again from the second-level cache, but the first one waits for it to come
/// from further away, if the whole operand stays nowhere near: a convolution of few pixels by many
/// channels is bound by that. Spread evenly over all rows, the same bytes come beside the
/// arithmetic. A packed panel is one piece of memory, of which each step of the innermost loop
/// fetches an equal part (so that lines are asked for more than once if steps are many). Where an
/// operand is read as it lies, its panel is a short piece of each of many rows; the next one lies
/// beside it, and each pass of the rows over it fetches another line of those pieces.
///
/// The rows of a register tile, read element by element, are each a walk through memory that
/// hardware follows once it has met the beginning. So the first lines of the next tile's rows are
/// fetched, too.
///
/// Of inputs that are larger than the second-level cache, in panels of which two stay there. What
/// is fetched after the last panel is nobody's, which does no harm. Runs after Expand and after
/// MarkPrefetches, which fetches a little ahead in the same panel.
const UOp* PrefetchPanels(UOpGraph& graph, const UOp* sink, const Target& target);

}  // namespace quern

#endif  // QUERN_CODEGEN_PREFETCH_PANELS_H_
