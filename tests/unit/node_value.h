#ifndef QUERN_TESTS_UNIT_NODE_VALUE_H_
#define QUERN_TESTS_UNIT_NODE_VALUE_H_

#include <gtest/gtest.h>

#include <vector>

#include "rewrite/build.h"
#include "rewrite/evaluate.h"
#include "rewrite/interpret.h"

namespace quern {

// The value of a node without ranges: it is stored and read back.
inline Scalar ValueOf(UOpGraph& g, const UOp* value) {
  const DType type = IsIndex(value->dtype) ? kI64Type : value->dtype;
  const UOp* store =
      Store(g, Index(g, Param(g, type, 0, 1), IndexConst(g, 0)), Cast(g, value, type));
  uint64_t bits = 0;
  const BufferView view{0, &bits, ByteSize(type.scalar)};
  const absl::Status status =
      Interpret(Sink(g, std::vector<const UOp*>{store}), std::span(&view, 1));
  EXPECT_TRUE(status.ok()) << status;
  return ScalarFromBits(type.scalar, bits);
}

}  // namespace quern

#endif  // QUERN_TESTS_UNIT_NODE_VALUE_H_
