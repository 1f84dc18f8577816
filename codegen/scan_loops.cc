#include "codegen/scan_loops.h"

#include <algorithm>

#include "rewrite/build.h"

namespace quern {
namespace {

bool Contains(std::span<const UOp* const> ranges, const UOp* r) {
  return std::find(ranges.begin(), ranges.end(), r) != ranges.end();
}

}  // namespace

const UOp* IsLater(UOpGraph& graph, std::span<const UOp* const> ranges) {
  const UOp* is_later = nullptr;
  for (const UOp* r : ranges) {
    if (IsRegisterAxis(r->range_type())) continue;
    const UOp* later = Lt(graph, IndexConst(graph, 0), r);
    is_later = is_later == nullptr ? later : Binary(graph, Op::kOr, is_later, later);
  }
  return is_later;
}

void KeepInSequence(const UOp* scan, const std::vector<const UOp*>& known,
                    std::vector<const UOp*>& path) {
  const std::span<const UOp* const> own = scan->src().subspan(1);
  size_t next = 0;
  for (size_t i = 0; i < path.size(); ++i) {
    const bool is_own = Contains(own, path[i]);
    if (is_own ? own[next] != path[i] : next > 0 && !Contains(known, path[i])) {
      path.resize(i);
      return;
    }
    next += is_own ? 1 : 0;
  }
}

std::vector<const UOp*> LoopsInside(const UOp* scan, const std::vector<const UOp*>& around) {
  const std::span<const UOp* const> own = scan->src().subspan(1);
  std::vector<const UOp*> inside;
  bool open = false;
  for (const UOp* r : around) {
    const bool is_own = Contains(own, r);
    if (open && !is_own) inside.push_back(r);
    open = open || is_own;
  }
  return inside;
}

}  // namespace quern
