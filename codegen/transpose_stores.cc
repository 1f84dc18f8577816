#include "codegen/transpose_stores.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <span>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "codegen/access.h"
#include "codegen/map_statements.h"
#include "rewrite/build.h"

namespace quern {
namespace {

constexpr size_t kLeastRows = 4, kMostRows = 32;

// One of the stores, and where its first lane goes: `base` plus a constant.
struct Row {
  const UOp* store;
  Access access;
  const UOp* base;
  int64_t constant;

  int lanes() const { return store->src(1)->dtype.lanes; }
};

Row ReadRow(const UOp* store) {
  Row row{store, ReadAccess(store->src(0)), nullptr, 0};
  std::tie(row.base, row.constant) = SplitBase(row.access.base);
  return row;
}

bool LanesLieApart(const Row& row) {
  return row.lanes() >= 4 && std::has_single_bit(static_cast<unsigned>(row.lanes())) &&
         row.access.kind == Access::Kind::kStrided && std::abs(row.access.stride) > 1 &&
         row.access.gate_kind != Access::Gate::kLanes;
}

// Whether two stores may be rows of one tile.
bool Match(const Row& a, const Row& b) {
  return a.base == b.base && a.access.stride == b.access.stride && a.access.gate == b.access.gate &&
         a.lanes() == b.lanes();
}

class BlockTransposer {
 public:
  explicit BlockTransposer(UOpGraph& graph) : g_(graph) {}

  // The statements with tiles of `rows` transposed; rows that make no tile stay.
  std::vector<const UOp*> Run(std::vector<Row> rows) {
    std::vector<const UOp*> statements;
    while (!rows.empty()) {
      const Row first = rows.front();
      std::vector<Row> tile, rest;
      for (const Row& r : rows) (Match(first, r) ? tile : rest).push_back(r);
      std::sort(tile.begin(), tile.end(),
                [](const Row& a, const Row& b) { return a.constant < b.constant; });
      for (size_t begin = 0; begin < tile.size();) {
        size_t end = begin + 1;
        while (end < tile.size() && end - begin < kMostRows &&
               tile[end].constant == tile[end - 1].constant + 1) {
          ++end;
        }
        const std::span<const Row> run(tile.data() + begin, end - begin);
        if (run.size() >= kLeastRows) {
          StoreColumns(run, statements);
        } else {
          for (const Row& r : run) statements.push_back(r.store);
        }
        begin = end;
      }
      rows = std::move(rest);
    }
    return statements;
  }

 private:
  const UOp* Broadcast(const UOp* u, int lanes) {
    return g_.Make(Op::kBroadcast, u->dtype.WithLanes(lanes), {u});
  }

  void StoreColumns(std::span<const Row> rows, std::vector<const UOp*>& statements) {
    const Row& first = rows[0];
    const int count = static_cast<int>(rows.size());
    const int height = static_cast<int>(std::bit_ceil(rows.size()));
    std::vector<const UOp*> values;
    for (const Row& r : rows) values.push_back(r.store->src(1));
    values.resize(static_cast<size_t>(height), values.back());  // What is repeated is not stored.
    const DType dtype = values[0]->dtype;
    const UOp* block = g_.Make(Op::kInterleave, dtype.WithLanes(first.lanes() * height), values);
    const UOp* lanes = g_.Make(Op::kLanes, kIndexType.WithLanes(height), {});
    const UOp* gate = first.access.gate;
    if (gate != nullptr) gate = Broadcast(gate, height);
    if (count < height) {
      const UOp* inside = Lt(g_, lanes, Broadcast(IndexConst(g_, count), height));
      gate = gate == nullptr ? inside : And(g_, gate, inside);
    }
    for (int lane = 0; lane < first.lanes(); ++lane) {
      const UOp* column =
          g_.Make(Op::kExtract, dtype.WithLanes(height), {block}, {int64_t{lane} * height, 0});
      const UOp* begin = IndexConst(g_, first.constant + first.access.stride * lane);
      if (first.base != nullptr) begin = Add(g_, first.base, begin);
      const UOp* offset = Add(g_, Broadcast(begin, height), lanes);
      statements.push_back(Store(g_, Index(g_, first.access.buffer, offset, gate), column));
    }
  }

  UOpGraph& g_;
};

}  // namespace

const UOp* TransposeStores(UOpGraph& graph, const UOp* sink) {
  absl::flat_hash_set<const UOp*> read;
  for (const UOp* u : Toposort(sink)) {
    if (u->op == Op::kLoad) read.insert(u->src(0)->src(0));
  }
  return MapStatements(graph, sink, [&](const UOp* u) -> const UOp* {
    if (u->op != Op::kBlock || u->source_count < kLeastRows) return nullptr;
    std::vector<Row> rows;
    for (const UOp* s : u->src()) {
      if (s->op != Op::kStore || s->src(0)->src(0)->op != Op::kParam) return nullptr;
      if (read.contains(s->src(0)->src(0))) return nullptr;
      rows.push_back(ReadRow(s));
      if (!LanesLieApart(rows.back()) || rows.back().access.buffer != rows[0].access.buffer) {
        return nullptr;
      }
    }
    return graph.Make(Op::kBlock, kVoidType, BlockTransposer(graph).Run(std::move(rows)));
  });
}

}  // namespace quern
