#ifndef QUERN_TESTS_CONFORMANCE_CASE_KERNEL_H_
#define QUERN_TESTS_CONFORMANCE_CASE_KERNEL_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "optimizer/heuristic.h"
#include "optimizer/scheduler.h"
#include "rewrite/build.h"
#include "rewrite/verify.h"
#include "tests/fuzz/guarded_memory.h"
#include "tests/fuzz/kernel_runner.h"

namespace quern {

using Nodes = std::vector<const UOp*>;
using Values = std::vector<double>;

inline CpuDevice& Device() {
  static CpuDevice* device = [] {
    absl::StatusOr<std::unique_ptr<CpuDevice>> created = CpuDevice::Create();
    QUERN_CHECK(created.ok());
    return created->release();
  }();
  return *device;
}

// A kernel under construction: its graph, and the contents of its inputs by slot.
struct Kernel {
  UOpGraph g;
  std::vector<DType> types;
  std::vector<Values> contents;
  int axis = 0;
  const UOp* sink = nullptr;
  DType output_type;
  int64_t output_size = 0;

  const UOp* C(int64_t v) { return IndexConst(g, v); }
  const UOp* Loop(int64_t size) { return Range(g, size, axis++, AxisType::kLoop); }
  const UOp* Sum(int64_t size) { return Range(g, size, axis++, AxisType::kReduce); }
  // The element of a row-major tensor.
  const UOp* Offset(const Nodes& indices, const std::vector<int64_t>& shape) {
    const UOp* offset = C(0);
    for (size_t i = 0; i < indices.size(); ++i) {
      offset = Add(g, Mul(g, offset, C(shape[i])), indices[i]);
    }
    return offset;
  }
  const UOp* Input(DType type, const Values& values) {
    types.push_back(type);
    contents.push_back(values);
    return Param(g, type, static_cast<int64_t>(types.size()), static_cast<int64_t>(values.size()));
  }
  const UOp* At(const UOp* buffer, const UOp* offset, const UOp* gate = nullptr) {
    return Load(g, Index(g, buffer, offset, gate));
  }
  void Output(const UOp* value, const UOp* offset, int64_t size) {
    output_type = value->dtype;
    output_size = size;
    sink = Sink(g, Nodes{Store(g, Index(g, Param(g, value->dtype, 0, size), offset), value)});
  }
};

inline void Write(DType type, const Values& values, std::byte* to) {
  for (size_t i = 0; i < values.size(); ++i) {
    Scalar s;
    if (IsFloat(type)) {
      s.f = RoundFloat(type.scalar, values[i]);
    } else {
      s.i = static_cast<int64_t>(values[i]);
    }
    const uint64_t bits = ScalarToBits(type.scalar, s);
    std::memcpy(to + i * ByteSize(type.scalar), &bits, ByteSize(type.scalar));
  }
}

// Runs a compiled kernel, its buffers flush against unreadable pages, and reads the output.
inline Values RunBuilt(Kernel& k, CpuKernel& built, Flush flush) {
  std::vector<GuardedMemory> memory;
  std::vector<BufferView> views;
  memory.emplace_back(k.output_size * ByteSize(k.output_type.scalar), flush);
  std::memset(memory[0].data(), 0x5a, static_cast<size_t>(memory[0].bytes()));
  for (size_t i = 0; i < k.types.size(); ++i) {
    const auto size = static_cast<int64_t>(k.contents[i].size());
    memory.emplace_back(size * ByteSize(k.types[i].scalar), flush);
    Write(k.types[i], k.contents[i], memory.back().data());
  }
  for (size_t i = 0; i < memory.size(); ++i) {
    views.push_back({static_cast<int64_t>(i), memory[i].data(), memory[i].bytes()});
  }
  EXPECT_TRUE(RunKernel(built, views).ok());
  Values values;
  for (int64_t i = 0; i < k.output_size; ++i) {
    const Scalar s = ReadElement(k.output_type, memory[0].data(), i);
    values.push_back(IsFloat(k.output_type) ? s.f : static_cast<double>(s.i));
  }
  return values;
}

inline Values RunScheduled(Kernel& k, const UOp* scheduled) {
  absl::StatusOr<std::unique_ptr<CpuKernel>> built =
      BuildKernel(k.g, scheduled, Device().target(), Device());
  if (!built.ok()) {
    ADD_FAILURE() << built.status() << "\n" << PseudoCode(scheduled);
    return {};
  }
  const Values values = RunBuilt(k, **built, Flush::kEnd);
  const Values again = RunBuilt(k, **built, Flush::kBegin);
  const size_t bytes = values.size() * sizeof(double);
  EXPECT_TRUE(bytes == 0 || std::memcmp(values.data(), again.data(), bytes) == 0);
  return values;
}

// The output without actions, under the heuristic, and under each list of actions. Returns how many
// actions were refused.
inline int ExpectEverywhere(Kernel& k, const std::vector<std::string>& lists,
                            const Values& expected, double tolerance = 0) {
  const auto matches = testing::Pointwise(testing::NanSensitiveDoubleNear(tolerance), expected);
  EXPECT_TRUE(VerifyKernel(k.sink).ok()) << VerifyKernel(k.sink);
  EXPECT_THAT(RunScheduled(k, k.sink), matches) << "without actions";
  Scheduler heuristic(k.g, k.sink, Device().target());
  ApplyHeuristic(heuristic);
  EXPECT_THAT(RunScheduled(k, heuristic.kernel()), matches)
      << "under the heuristic: " << ActionsToString(heuristic.actions());
  int refused = 0;
  for (const std::string& list : lists) {
    const absl::StatusOr<std::vector<Action>> actions = ParseActions(list);
    EXPECT_TRUE(actions.ok()) << actions.status();
    Scheduler scheduler(k.g, k.sink, Device().target());
    for (const Action& action : *actions) {
      const UOp* before = scheduler.kernel();
      const absl::Status status = scheduler.Apply(action);
      if (status.ok()) continue;
      ++refused;
      EXPECT_FALSE(status.message().empty());
      EXPECT_EQ(scheduler.kernel(), before);
    }
    EXPECT_THAT(RunScheduled(k, scheduler.kernel()), matches)
        << list << ", of which was applied: " << ActionsToString(scheduler.actions());
  }
  return refused;
}

}  // namespace quern

#endif  // QUERN_TESTS_CONFORMANCE_CASE_KERNEL_H_
