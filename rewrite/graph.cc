#include "rewrite/graph.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"

namespace quern {
namespace {

constexpr size_t kBlockBytes = 1 << 16;
constexpr size_t kFirstTable = 1 << 8;

// Two 64-bit lanes of multiply-and-fold mixing. Not cryptographic: a hash is always confirmed by
// comparing fields.
struct Hasher {
  uint64_t a = 0x9e3779b97f4a7c15ull;
  uint64_t b = 0xd1b54a32d192ed03ull;

  static uint64_t Fold(uint64_t x, uint64_t y) {
    const unsigned __int128 product = static_cast<unsigned __int128>(x) * y;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  void Add(uint64_t x) {
    a = Fold(a ^ x, 0xa0761d6478bd642full);
    b = Fold(b + x, 0xe7037ed1a0b428dbull) ^ (x << 1);
  }
  Hash128 Finish() const {
    return {Fold(a ^ 0x8ebc6af09c88c6e3ull, b | 1), Fold(b ^ 0x589965cc75374cc3ull, a | 1)};
  }
};

// Hashes of op *names*, so that inserting an op into the enumeration changes no stored hash.
std::array<uint64_t, kOpCount> MakeNameHashes() {
  std::array<uint64_t, kOpCount> hashes{};
  for (int i = 0; i < kOpCount; ++i) {
    uint64_t h = 0xcbf29ce484222325ull;
    for (char c : OpName(static_cast<Op>(i))) {
      h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    }
    hashes[i] = h;
  }
  return hashes;
}

Hash128 ContentHash(Op op, DType dtype, std::span<const UOp* const> sources, Arg arg) {
  static const std::array<uint64_t, kOpCount> name_hashes = MakeNameHashes();
  // The combining op is an argument by name, too.
  int64_t a = arg.a;
  if (op == Op::kReduce || op == Op::kScan || op == Op::kHorizontal || op == Op::kPrefix) {
    a = static_cast<int64_t>(name_hashes[static_cast<size_t>(arg.a)]);
  }
  Hasher h;
  h.Add(name_hashes[static_cast<size_t>(op)]);
  h.Add((static_cast<uint64_t>(dtype.scalar) << 32) | dtype.lanes);
  h.Add(static_cast<uint64_t>(a));
  h.Add(static_cast<uint64_t>(arg.b));
  for (const UOp* s : sources) {
    h.Add(s->hash.high);
    h.Add(s->hash.low);
  }
  return h.Finish();
}

bool Same(const UOp* u, Op op, DType dtype, std::span<const UOp* const> sources, Arg arg) {
  if (u->op != op || u->dtype != dtype || u->arg != arg || u->source_count != sources.size()) {
    return false;
  }
  return std::equal(sources.begin(), sources.end(), u->sources);
}

}  // namespace

UOpGraph::UOpGraph() : table_(kFirstTable, nullptr) {}

UOpGraph::UOpGraph(const UOpGraph* base)
    : base_(base), next_id_(base->next_id_), table_(kFirstTable, nullptr) {
  QUERN_CHECK_MSG(base->frozen(), "an overlay stands on a frozen graph");
}

UOpGraph::~UOpGraph() = default;

const UOp* UOpGraph::Find(const Hash128& hash, Op op, DType dtype,
                          std::span<const UOp* const> sources, Arg arg) const {
  const size_t mask = table_.size() - 1;
  for (size_t i = hash.low & mask; table_[i] != nullptr; i = (i + 1) & mask) {
    if (table_[i]->hash == hash && Same(table_[i], op, dtype, sources, arg)) return table_[i];
  }
  return nullptr;
}

void* UOpGraph::Allocate(size_t bytes) {
  bytes = (bytes + 15) & ~size_t{15};
  if (cursor_ == nullptr || static_cast<size_t>(block_end_ - cursor_) < bytes) {
    const size_t block = std::max(kBlockBytes, bytes);
    blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(block));
    cursor_ = blocks_.back().get();
    block_end_ = cursor_ + block;
    bytes_ += block;
  }
  void* result = cursor_;
  cursor_ += bytes;
  return result;
}

void UOpGraph::Grow() {
  std::vector<const UOp*> old(table_.size() * 2, nullptr);
  old.swap(table_);
  const size_t mask = table_.size() - 1;
  for (const UOp* u : old) {
    if (u == nullptr) continue;
    size_t i = u->hash.low & mask;
    while (table_[i] != nullptr) i = (i + 1) & mask;
    table_[i] = u;
  }
}

const UOp* UOpGraph::Make(Op op, DType dtype, std::span<const UOp* const> sources, Arg arg) {
  const OpInfo& info = GetOpInfo(op);
  QUERN_CHECK(static_cast<int>(sources.size()) >= info.min_sources);
  QUERN_CHECK(info.max_sources < 0 || static_cast<int>(sources.size()) <= info.max_sources);
  const Hash128 hash = ContentHash(op, dtype, sources, arg);
  for (const UOpGraph* g = base_; g != nullptr; g = g->base_) {
    if (const UOp* found = g->Find(hash, op, dtype, sources, arg)) return found;
  }
  if (const UOp* found = Find(hash, op, dtype, sources, arg)) return found;

  QUERN_CHECK_MSG(!frozen_, "a frozen graph makes no new nodes");
  if ((used_ + 1) * 2 > table_.size()) Grow();
  auto** copied = static_cast<const UOp**>(Allocate(sources.size() * sizeof(const UOp*)));
  uint64_t child_mask = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    copied[i] = sources[i];
    child_mask |= OpBit(sources[i]->op);
  }
  const UOp* made =
      new (Allocate(sizeof(UOp))) UOp{op,
                                      static_cast<uint8_t>(std::min<size_t>(sources.size(), 255)),
                                      dtype,
                                      next_id_++,
                                      static_cast<uint32_t>(sources.size()),
                                      child_mask,
                                      hash,
                                      arg,
                                      copied};
  const size_t mask = table_.size() - 1;
  size_t i = hash.low & mask;
  while (table_[i] != nullptr) i = (i + 1) & mask;
  table_[i] = made;
  ++used_;
  return made;
}

const UOp* UOpGraph::Import(const UOp* root) {
  absl::flat_hash_map<const UOp*, const UOp*> copies;
  std::vector<const UOp*> sources;
  for (const UOp* u : Toposort(root)) {
    sources.clear();
    for (const UOp* s : u->src()) sources.push_back(copies.at(s));
    copies[u] = Make(u->op, u->dtype, sources, u->arg);
  }
  return copies.at(root);
}

std::vector<const UOp*> Toposort(const UOp* root) {
  return Toposort(std::span<const UOp* const>(&root, 1));
}

std::vector<const UOp*> Toposort(std::span<const UOp* const> roots) {
  std::vector<const UOp*> order;
  absl::flat_hash_set<const UOp*> done;
  struct Frame {
    const UOp* node;
    uint32_t next;
  };
  std::vector<Frame> stack;
  for (const UOp* root : roots) {
    if (!done.insert(root).second) continue;
    stack.push_back({root, 0});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next < frame.node->source_count) {
        const UOp* source = frame.node->sources[frame.next++];
        if (done.insert(source).second) stack.push_back({source, 0});
      } else {
        order.push_back(frame.node);
        stack.pop_back();
      }
    }
  }
  return order;
}

const UOp* WithSources(UOpGraph& graph, const UOp* u, std::span<const UOp* const> sources) {
  if (std::equal(sources.begin(), sources.end(), u->sources, u->sources + u->source_count))
    return u;
  return graph.Make(u->op, u->dtype, sources, u->arg);
}

const UOp* Substitute(UOpGraph& graph, const UOp* root, std::span<const UOp* const> from,
                      std::span<const UOp* const> to) {
  QUERN_CHECK(from.size() == to.size());
  absl::flat_hash_map<const UOp*, const UOp*> replaced;
  for (size_t i = 0; i < from.size(); ++i) replaced[from[i]] = to[i];
  absl::InlinedVector<const UOp*, 8> sources;
  // Sources of a replaced node are visited although they may vanish; that costs time, not truth.
  for (const UOp* u : Toposort(root)) {
    if (replaced.contains(u)) continue;
    sources.clear();
    for (const UOp* s : u->src()) sources.push_back(replaced.at(s));
    replaced[u] = WithSources(graph, u, sources);
  }
  return replaced.at(root);
}

}  // namespace quern
