#ifndef QUERN_OPTIMIZER_ACCESS_PATTERN_H_
#define QUERN_OPTIMIZER_ACCESS_PATTERN_H_

#include <vector>

#include "rewrite/graph.h"

namespace quern {

/// How the accesses of one statement (a REDUCE's body, or a STORE without the REDUCEs in it) move
/// along one range.
struct AccessPattern {
  int contiguous = 0;  ///< loads with stride 1
  int fixed = 0;       ///< loads that do not depend on it: they are reused
  int strided = 0;     ///< loads with another constant stride
  int gathered = 0;    ///< loads with no constant stride
  bool store_contiguous = false;
  bool store_depends = false;
};

/// The accesses of one statement: loads, and the place stored to (nullptr in a REDUCE).
struct StatementAccesses {
  const UOp* node = nullptr;      ///< the REDUCE or STORE
  std::vector<const UOp*> loads;  ///< INDEX nodes
  const UOp* store = nullptr;     ///< INDEX node
};

/// One entry for every REDUCE and STORE of a kernel AST, REDUCEs before those who use them.
std::vector<StatementAccesses> CollectAccesses(const UOp* kernel);

AccessPattern PatternAlong(const StatementAccesses& accesses, const UOp* range);

}  // namespace quern

#endif  // QUERN_OPTIMIZER_ACCESS_PATTERN_H_
