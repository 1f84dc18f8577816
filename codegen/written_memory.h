#ifndef QUERN_CODEGEN_WRITTEN_MEMORY_H_
#define QUERN_CODEGEN_WRITTEN_MEMORY_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "rewrite/uop.h"

namespace quern {

/// Which values of a phase depend on memory that the phase writes. Those that do not are pure: they
/// may be computed anywhere where their ranges are known, once.
class WrittenMemory {
 public:
  /// Takes all nodes of a phase, sources before users.
  void Begin(const std::vector<const UOp*>& order);

  bool IsPure(const UOp* u) const { return !reads_.contains(u); }

  /// Notes a store to a buffer.
  void Written(const UOp* buffer) { ++writes_[buffer]; }

  /// A number that changes with every store to a buffer on which `u` depends.
  uint64_t Version(const UOp* u) const;

 private:
  absl::flat_hash_map<const UOp*, absl::flat_hash_set<const UOp*>> reads_;  // written buffers
  absl::flat_hash_map<const UOp*, uint64_t> writes_;
};

}  // namespace quern

#endif  // QUERN_CODEGEN_WRITTEN_MEMORY_H_
