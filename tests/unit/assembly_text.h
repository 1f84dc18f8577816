#ifndef QUERN_TESTS_UNIT_ASSEMBLY_TEXT_H_
#define QUERN_TESTS_UNIT_ASSEMBLY_TEXT_H_

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "codegen/compile.h"
#include "codegen/lower.h"

namespace quern {

// Machine code as text, for any target that LLVM knows.

inline std::string Assembly(const LoweredKernel& lowered, const Target& target) {
  CompileOptions options;
  options.verify = true;
  options.keep_assembly = true;
  const absl::StatusOr<CompiledKernel> compiled = CompileForCpu(lowered, target, options);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  if (!compiled.ok()) return "";
  EXPECT_FALSE(compiled->object.empty());
  return compiled->assembly;
}

inline int Count(std::string_view text, std::string_view what) {
  int count = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

/// The part of a text from the last label before the first `what` to the branch after the last one.
inline std::string LoopAround(const std::string& text, std::string_view what) {
  const size_t first = text.find(what);
  const size_t last = text.rfind(what);
  if (first == text.npos) return "";
  const size_t begin = text.rfind("\n.LBB", first);
  const size_t end = text.find("\tj", last);
  return text.substr(begin, end - begin);
}

}  // namespace quern

#endif  // QUERN_TESTS_UNIT_ASSEMBLY_TEXT_H_
