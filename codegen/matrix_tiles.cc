#include "codegen/matrix_tiles.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "codegen/access.h"
#include "codegen/map_statements.h"
#include "codegen/matrix_instructions.h"
#include "rewrite/build.h"
#include "rewrite/linear.h"

namespace quern {
namespace {

// The number of the vector that an access of a register buffer names; -1 if it is none.
int64_t VectorNumber(const UOp* index, int lanes) {
  if (index->src(0)->op != Op::kRegister || index->source_count != 2) return -1;
  const Access access = ReadAccess(index);
  if (access.kind != Access::Kind::kStrided || access.stride != 1) return -1;
  const auto [base, constant] = SplitBase(access.base);
  if (base != nullptr || index->dtype.lanes != lanes || constant % lanes != 0) return -1;
  return constant / lanes;
}

// Neighbours that are loaded, from a place that is linear in the loops.
struct Neighbours {
  const UOp* buffer = nullptr;
  LinearForm place;
};

std::optional<Neighbours> ReadNeighbours(const UOp* u, int lanes) {
  if (u->op != Op::kLoad || u->dtype.lanes != lanes || u->arg.a != 0 || u->source_count != 1)
    return std::nullopt;
  const Access access = ReadAccess(u->src(0));
  if (access.kind != Access::Kind::kStrided || access.stride != 1 || access.gate != nullptr) {
    return std::nullopt;
  }
  if (access.buffer->op == Op::kRegister) return std::nullopt;
  return Neighbours{access.buffer, access.base == nullptr ? LinearForm() : ToLinear(access.base)};
}

// One statement of the loop: a row of some tile.
struct Row {
  const UOp* accumulator = nullptr;  // the register buffer
  int64_t vector = 0;                // its number there
  int instruction = -1;
  const UOp* columns = nullptr;  // the load of what the lanes read
  Neighbours a;
  Neighbours b;
};

std::optional<Row> ReadRow(const UOp* store, const Target& target) {
  const UOp* matrix = store->src(1);
  if (store->op != Op::kStore || matrix->op != Op::kMatrix) return std::nullopt;
  const MatrixInstruction& m = MatrixInstructions()[static_cast<size_t>(matrix->arg.a)];
  const UOp* before = matrix->src(0);
  if (before->op != Op::kLoad || before->src(0) != store->src(0)) return std::nullopt;
  Row row;
  row.accumulator = store->src(0)->src(0);
  row.vector = VectorNumber(store->src(0), m.lanes);
  const int one = matrix->src(1)->dtype.lanes == m.group ? 1 : 2;
  const UOp* a = matrix->src(static_cast<size_t>(one));
  row.columns = matrix->src(static_cast<size_t>(3 - one));
  row.instruction = FindTileInstruction(m, a->dtype.scalar, row.columns->dtype.scalar, target);
  const std::optional<Neighbours> ours = ReadNeighbours(a, m.group);
  const std::optional<Neighbours> shared = ReadNeighbours(row.columns, m.group * m.lanes);
  if (row.vector < 0 || row.instruction < 0 || !ours || !shared) return std::nullopt;
  row.a = *ours;
  row.b = *shared;
  return row;
}

// Whether nothing but the loop's own term depends on it.
bool IsLinearIn(const LinearForm& form, const UOp* range) {
  return std::none_of(form.terms.begin(), form.terms.end(), [&](const auto& term) {
    if (term.first == range) return false;
    const std::vector<const UOp*> order = Toposort(term.first);
    return std::find(order.begin(), order.end(), range) != order.end();
  });
}

bool SameTerms(const LinearForm& a, const LinearForm& b) { return a.terms == b.terms; }

// Some rows, as many as the instruction has, equally far apart.
struct Tile {
  std::vector<Row> rows;
  int64_t stride = 0;  // elements between the rows' factors
};

// What a loop of matrix instructions is made of; empty if it is something else.
std::vector<Tile> FindTiles(const UOp* loop, const Target& target) {
  const UOp* range = loop->src(0);
  std::vector<const UOp*> statements;
  for (const UOp* s : loop->src().subspan(1)) {
    if (s->op == Op::kBlock) {
      statements.insert(statements.end(), s->src().begin(), s->src().end());
    } else {
      statements.push_back(s);
    }
  }
  std::map<uint32_t, std::vector<Row>> by_columns;
  for (const UOp* s : statements) {
    if (s->op != Op::kStore) return {};
    const std::optional<Row> row = ReadRow(s, target);
    if (!row.has_value() || !IsLinearIn(row->a.place, range) || !IsLinearIn(row->b.place, range)) {
      return {};
    }
    by_columns[row->columns->id].push_back(*row);
  }
  std::vector<Tile> tiles;
  for (auto& [id, rows] : by_columns) {
    const MatrixInstruction& m = MatrixInstructions()[static_cast<size_t>(rows[0].instruction)];
    const auto size = static_cast<size_t>(m.tile);
    if (rows.size() % size != 0 || range->range_size() < m.tile) return {};
    if (rows[0].b.place.CoefficientOf(range) < m.group * m.lanes) return {};
    if (rows[0].a.place.CoefficientOf(range) != m.group) return {};
    std::sort(rows.begin(), rows.end(),
              [](const Row& x, const Row& y) { return x.a.place.constant < y.a.place.constant; });
    for (size_t first = 0; first < rows.size(); first += size) {
      Tile tile;
      tile.rows.assign(rows.begin() + static_cast<int64_t>(first),
                       rows.begin() + static_cast<int64_t>(first + size));
      tile.stride = tile.rows[1].a.place.constant - tile.rows[0].a.place.constant;
      for (size_t i = 0; i < size; ++i) {
        const Row& row = tile.rows[i];
        const int64_t apart = row.a.place.constant - tile.rows[0].a.place.constant;
        if (row.a.buffer != tile.rows[0].a.buffer || row.instruction != tile.rows[0].instruction ||
            row.accumulator != tile.rows[0].accumulator ||
            !SameTerms(row.a.place, tile.rows[0].a.place) ||
            apart != static_cast<int64_t>(i) * tile.stride) {
          return {};
        }
      }
      tiles.push_back(std::move(tile));
    }
  }
  return tiles;
}

// Where the vectors of the register buffers go, so that the rows of each tile are neighbours.
class VectorPlaces {
 public:
  // False, and nothing done, if they cannot be.
  bool Add(const std::vector<Tile>& tiles) {
    const auto before = places_;
    for (const Tile& tile : tiles) {
      std::map<int64_t, int64_t>& places = places_[tile.rows[0].accumulator];
      const auto first = places.find(tile.rows[0].vector);
      const bool known = first != places.end();
      const int64_t begin = known ? first->second : static_cast<int64_t>(places.size());
      for (size_t i = 0; i < tile.rows.size(); ++i) {
        const int64_t place = begin + static_cast<int64_t>(i);
        const auto [at, is_new] = places.try_emplace(tile.rows[i].vector, place);
        if (is_new != known && at->second == place) continue;
        places_ = before;
        return false;
      }
    }
    return true;
  }

  // A tile's rows begin at this vector.
  int64_t Of(const Tile& tile) const {
    return places_.at(tile.rows[0].accumulator).at(tile.rows[0].vector);
  }

  // Appends what every access of the moved buffers becomes; false if one is no whole vector.
  bool Moves(UOpGraph& g, const std::vector<const UOp*>& order, int lanes,
             std::vector<const UOp*>& from, std::vector<const UOp*>& to) {
    for (const UOp* u : order) {
      if (u->op != Op::kIndex || !places_.contains(u->src(0))) continue;
      const int64_t vector = VectorNumber(u, lanes);
      if (vector < 0) return false;
      std::map<int64_t, int64_t>& places = places_.at(u->src(0));
      const int64_t place =
          places.try_emplace(vector, static_cast<int64_t>(places.size())).first->second;
      from.push_back(u);
      to.push_back(Vectors(g, u->src(0), place, lanes, 1));
    }
    return true;
  }

  static const UOp* Vectors(UOpGraph& g, const UOp* buffer, int64_t place, int lanes, int count) {
    const DType type = kIndexType.WithLanes(lanes * count);
    const UOp* base = g.Make(Op::kBroadcast, type, {IndexConst(g, place * lanes)});
    return Index(g, buffer, quern::Add(g, base, g.Make(Op::kLanes, type, {})));
  }

 private:
  std::map<const UOp*, std::map<int64_t, int64_t>> places_;
};

// `place` where the loop is `steps` times as far in each iteration of `range` (nullptr: at 0).
const UOp* BaseOf(UOpGraph& g, LinearForm place, const UOp* loop, const UOp* range, int steps) {
  const int64_t coefficient = place.CoefficientOf(loop);
  std::erase_if(place.terms, [&](const auto& term) { return term.first == loop; });
  if (range != nullptr) place.terms.emplace_back(range, coefficient * steps);
  return FromLinear(g, ToLinear(FromLinear(g, place)));
}

const UOp* TileStatement(UOpGraph& g, const Tile& tile, const VectorPlaces& places, const UOp* loop,
                         const UOp* range) {
  const Row& row = tile.rows[0];
  const MatrixInstruction& m = MatrixInstructions()[static_cast<size_t>(row.instruction)];
  const UOp* sums = VectorPlaces::Vectors(g, row.accumulator, places.Of(tile), m.lanes, m.tile);
  const UOp* a = Load(g, Index(g, row.a.buffer,
                               TileOffsets(g, BaseOf(g, row.a.place, loop, range, m.tile), m.tile,
                                           tile.stride, m.tile * m.group)));
  const UOp* b = Load(g, Index(g, row.b.buffer,
                               TileOffsets(g, BaseOf(g, row.b.place, loop, range, m.tile), m.tile,
                                           row.b.place.CoefficientOf(loop), m.lanes * m.group)));
  const UOp* sum = Load(g, sums);
  return Store(g, sums, g.Make(Op::kTile, sum->dtype, {sum, a, b}, {row.instruction, m.tile}));
}

// Whole tiles, then the steps that are left.
const UOp* WithTiles(UOpGraph& g, const UOp* loop, const std::vector<Tile>& tiles,
                     const VectorPlaces& places) {
  const UOp* range = loop->src(0);
  const int steps = MatrixInstructions()[static_cast<size_t>(tiles[0].rows[0].instruction)].tile;
  const int64_t whole = range->range_size() / steps;
  const int64_t left = range->range_size() % steps;
  const auto part = [&](int64_t size) {
    return size == 1 ? nullptr : Range(g, size, range->range_axis(), range->range_type());
  };
  const auto close = [&](const UOp* own, std::vector<const UOp*> body) {
    if (own != nullptr) body.insert(body.begin(), own);
    return g.Make(own != nullptr ? Op::kLoop : Op::kBlock, kVoidType, body);
  };
  const UOp* outer = part(whole);
  std::vector<const UOp*> body;
  for (const Tile& tile : tiles) body.push_back(TileStatement(g, tile, places, range, outer));
  const UOp* result = close(outer, body);
  if (left == 0) return result;
  const UOp* rest = part(left);
  const UOp* done = IndexConst(g, whole * steps);
  const UOp* at = rest == nullptr ? done : Add(g, rest, done);
  body.clear();
  for (const UOp* s : loop->src().subspan(1)) body.push_back(Substitute(g, s, {{range}}, {{at}}));
  return g.Make(Op::kBlock, kVoidType, {result, close(rest, body)});
}

const UOp* TilePhase(UOpGraph& g, const UOp* phase, const Target& target) {
  const std::vector<const UOp*> order = Toposort(phase);
  absl::flat_hash_map<const UOp*, std::vector<Tile>> found;
  VectorPlaces places;
  for (const UOp* u : order) {
    if (u->op != Op::kLoop) continue;
    std::vector<Tile> tiles = FindTiles(u, target);
    if (!tiles.empty() && places.Add(tiles)) found[u] = std::move(tiles);
  }
  if (found.empty()) return phase;
  const MatrixInstruction& m =
      MatrixInstructions()[static_cast<size_t>(found.begin()->second[0].rows[0].instruction)];
  std::vector<const UOp*> from;
  std::vector<const UOp*> to;
  if (!places.Moves(g, order, m.lanes, from, to)) return phase;
  // The loops first: their accesses are those of the old places, but for the tiles'.
  const UOp* tiled = MapStatements(g, phase, [&](const UOp* u) -> const UOp* {
    const auto loop = found.find(u);
    return loop == found.end() ? nullptr : WithTiles(g, u, loop->second, places);
  });
  return Substitute(g, tiled, from, to);
}

}  // namespace

const UOp* UseMatrixTiles(UOpGraph& graph, const UOp* sink, const Target& target) {
  const std::span<const MatrixInstruction> all = MatrixInstructions();
  const bool has = std::any_of(all.begin(), all.end(), [&](const MatrixInstruction& m) {
    return m.tile > 1 && target.Has(std::string(m.feature));
  });
  if (!has) return sink;
  std::vector<const UOp*> phases;
  for (const UOp* phase : sink->src()) phases.push_back(TilePhase(graph, phase, target));
  return graph.Make(Op::kSink, kVoidType, phases, sink->arg);
}

}  // namespace quern
