#include "codegen/written_memory.h"

namespace quern {

void WrittenMemory::Begin(const std::vector<const UOp*>& order) {
  for (const UOp* u : order) {
    if (u->op == Op::kStore) writes_[u->src(0)->src(0)] = 0;
  }
  for (const UOp* u : order) {
    if (GetOpInfo(u->op).statement) continue;
    absl::flat_hash_set<const UOp*> buffers;
    if (u->op == Op::kLoad && writes_.contains(u->src(0)->src(0))) {
      buffers.insert(u->src(0)->src(0));
    }
    for (const UOp* s : u->src()) {
      auto found = reads_.find(s);
      if (found != reads_.end()) buffers.insert(found->second.begin(), found->second.end());
    }
    if (!buffers.empty()) reads_[u] = std::move(buffers);
  }
}

uint64_t WrittenMemory::Version(const UOp* u) const {
  uint64_t version = 0;
  for (const UOp* buffer : reads_.at(u)) version += writes_.at(buffer);
  return version;
}

}  // namespace quern
