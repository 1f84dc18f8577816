#include "codegen/row_major.h"

#include "rewrite/build.h"

namespace quern {

const UOp* RowMajorOffset(UOpGraph& graph, const std::vector<const UOp*>& dimensions) {
  const UOp* offset = IndexConst(graph, 0);
  int64_t stride = 1;
  for (size_t i = dimensions.size(); i-- > 0;) {
    const UOp* term = dimensions[i];
    if (stride != 1) term = Mul(graph, term, IndexConst(graph, stride));
    offset = Add(graph, term, offset);
    stride *= dimensions[i]->range_size();
  }
  return offset;
}

}  // namespace quern
