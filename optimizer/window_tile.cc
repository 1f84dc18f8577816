#include "optimizer/window_tile.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "optimizer/best_first.h"
#include "optimizer/cpu_traits.h"
#include "optimizer/heuristic_steps.h"
#include "rewrite/linear.h"

namespace quern {
namespace {

constexpr int64_t kLine = 64;
// Cycles for a line that comes from the second-level cache, loads and sums beside it: alone, in a
// row of four or eight, from one of the rows of a tile that are pages apart, from such a row of
// two.
constexpr double kLineCycles = 2.7, kLineOfFour = 2.2, kLineOfEight = 1.8, kLineApart = 3.05;
constexpr double kTwoLinesApart = 2.45;
constexpr int64_t kApart = 4096;     // bytes
constexpr double kPerCycle = 2;      // loads, and multiply-adds
constexpr double kPaddedRows = 1.1;  // for the masks
// Ways of the first-level cache are a page each.
constexpr int64_t kWay = 4096;
// Places of a window, and vectors in its copies: what is unrolled.
constexpr int64_t kMostPlaces = 64, kMostCopies = 128;

struct Operand {
  LinearForm form;
  int64_t bytes = 4;  // of an element
};

struct Window {
  std::vector<Operand> operands;
  Operand output;
  std::vector<const UOp*> outputs;  // loops beside the lanes, outermost first
  std::vector<const UOp*> reduced;
  int64_t places = 1;
  int64_t lanes = 1;  // all of them
  int64_t vector = 1;
  int64_t l1_bytes = 0;
  int64_t registers = 0;
  int64_t cores = 1;
  bool near = false;  // about what the second-level cache holds
};

// False if the reduction is no window of rows of lanes.
bool Describe(const Scheduler& s, const RangeSets& sets, const StatementAccesses& reduce,
              const StatementAccesses& store, const UOp* lane, Window& w) {
  w.vector = VectorLanes(s, reduce);
  w.lanes = lane->range_size();
  w.l1_bytes = s.target().l1_bytes;
  w.registers = s.target().vector_registers;
  w.cores = s.target().cores;
  if (w.lanes < w.vector || reduce.loads.empty()) return false;
  w.near = BufferBytes(s.kernel()) <= 2 * s.target().l2_bytes;
  for (const UOp* r : reduce.node->src().subspan(1)) {
    if (r->range_type() != AxisType::kReduce) return false;
    w.reduced.push_back(r);
    w.places *= r->range_size();
    if (w.places > kMostPlaces) return false;
  }
  for (const UOp* r : sets.Members(sets.Of(reduce.node))) {
    if (r != lane && r->range_type() == AxisType::kLoop) w.outputs.push_back(r);
  }
  for (const UOp* load : reduce.loads) {
    Operand operand = {ToLinear(load->src(1)), ByteSize(load->dtype.scalar)};
    if (operand.form.CoefficientOf(lane) != 1) return false;
    for (const auto& [term, coefficient] : operand.form.terms) {
      if (term->op != Op::kRange) return false;
      if (term != lane && coefficient % w.lanes != 0) return false;
    }
    w.operands.push_back(std::move(operand));
  }
  w.output = {ToLinear(store.node->src(0)->src(1)), ByteSize(store.node->src(1)->dtype.scalar)};
  return true;
}

// The places of an operand that a tile reads, in rows of lanes.
std::vector<int64_t> PlacesOf(const Window& w, const Operand& operand, const OutputTile& tile) {
  std::vector<int64_t> places = {0};
  const auto spread = [&](int64_t coefficient, int64_t count) {
    if (coefficient == 0) return;
    const size_t before = places.size();
    for (int64_t i = 1; i < count; ++i) {
      for (size_t p = 0; p < before; ++p) places.push_back(places[p] + i * coefficient);
    }
  };
  if (tile.row_axis != nullptr) spread(operand.form.CoefficientOf(tile.row_axis), tile.rows);
  for (const UOp* r : w.reduced) spread(operand.form.CoefficientOf(r), r->range_size());
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

// Whether whole rows of lanes at these places, and what is stored, stay in the first-level cache
// together.
bool StayTogether(const Window& w, std::vector<std::vector<int64_t>> places,
                  const OutputTile& tile) {
  std::array<int64_t, kWay / kLine> lines = {};
  std::vector<int64_t>& stored = places.emplace_back();
  for (int64_t row = 0; row < tile.rows; ++row) {
    const UOp* axis = tile.row_axis;
    stored.push_back(axis == nullptr ? 0 : row * w.output.form.CoefficientOf(axis));
  }
  int64_t left = w.l1_bytes / kLine;  // Rows may be far longer than the cache.
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t bytes = (i < w.operands.size() ? w.operands[i] : w.output).bytes;
    const int64_t count = (w.lanes * bytes + kLine - 1) / kLine;
    left -= count * static_cast<int64_t>(places[i].size());
    if (left < 0) return false;
    for (int64_t place : places[i]) {
      const int64_t first = place * bytes / kLine;
      for (int64_t line = 0; line < count; ++line) {
        const auto size = static_cast<int64_t>(lines.size());
        ++lines[static_cast<size_t>(((first + line) % size + size) % size)];
      }
    }
  }
  return *std::max_element(lines.begin(), lines.end()) <= w.l1_bytes / kWay;
}

// Those of `places` that are not there from the tile before, `step` elements back.
int64_t NewPlaces(const std::vector<int64_t>& places, int64_t step) {
  return std::count_if(places.begin(), places.end(), [&](int64_t place) {
    return !std::binary_search(places.begin(), places.end(), place + step);
  });
}

// Whether threads may divide other loops than those along and of the tile's rows. If they divide
// the lanes, each fetches, ahead of its loop's end, what the other writes: the more, the longer a
// piece.
bool DividesElsewhere(const Window& w, const OutputTile& tile) {
  return w.cores == 1 || std::any_of(w.outputs.begin(), w.outputs.end(), [&](const UOp* r) {
           return r != tile.row_axis && CanDivide(r->range_size(), w.cores);
         });
}

double LineCycles(const Window& w, const OutputTile& tile) {
  const int64_t lines = tile.lanes * w.output.bytes / kLine;
  if (lines >= 8) return kLineOfEight;
  if (lines >= 4) return kLineOfFour;
  if (tile.row_axis == nullptr) return kLineCycles;
  const int64_t step = std::abs(w.output.form.CoefficientOf(tile.row_axis)) * w.output.bytes;
  if (step < kApart) return kLineCycles;
  return lines >= 2 && w.near && DividesElsewhere(w, tile) ? kTwoLinesApart : kLineApart;
}

// For one vector of outputs.
double CyclesOf(const Window& w, const OutputTile& tile) {
  std::vector<std::vector<int64_t>> places;
  int64_t loads = 0;
  for (const Operand& operand : w.operands) {
    places.push_back(PlacesOf(w, operand, tile));
    loads += static_cast<int64_t>(places.back().size());
  }
  const bool stay = StayTogether(w, places, tile);
  const UOp* next = w.outputs.empty() ? nullptr : w.outputs.back();
  int64_t brought = tile.rows;  // lines stored to
  for (size_t i = 0; i < places.size(); ++i) {
    int64_t step = 0;
    bool follows = false;
    for (const UOp* r : w.outputs) follows |= w.operands[i].form.CoefficientOf(r) != 0;
    if (next != nullptr) {
      step = w.operands[i].form.CoefficientOf(next) * (next == tile.row_axis ? tile.rows : 1);
    }
    // The same for all outputs, and small.
    const auto all = static_cast<int64_t>(places[i].size());
    const bool kept = !follows && all * w.lanes * w.operands[i].bytes <= w.l1_bytes / 2;
    brought += kept ? 0 : stay ? NewPlaces(places[i], step) : all;
  }
  const auto operations = static_cast<double>(std::max(loads, tile.rows * w.places));
  const auto rows = static_cast<double>(tile.rows);
  double padded = 1;
  if (tile.row_axis != nullptr && tile.row_axis->range_size() % tile.rows != 0) {
    const int64_t size = tile.row_axis->range_size();
    const int64_t tiles = (size + tile.rows - 1) / tile.rows;
    padded = kPaddedRows * rows * static_cast<double>(tiles) / static_cast<double>(size);
  }
  const double lines = LineCycles(w, tile) * static_cast<double>(brought);
  return padded * std::max(operations / kPerCycle, lines) / rows;
}

// Two registers of lanes by a few neighbours along the last loop of the output, for a window whose
// rows are read in turn.
OutputTile TileOfNeighbours(const Window& w) {
  const OutputTile none;
  if (w.reduced.size() != 2 || w.outputs.empty() || w.lanes % (2 * w.vector) != 0) return none;
  const UOp* last = w.outputs.back();
  for (int64_t rows : {4, 7, 6, 5}) {
    if (last->range_size() % rows == 0 && 4 * rows <= w.registers) {
      return {2 * w.vector, last, rows};
    }
  }
  return none;
}

}  // namespace

const UOp* WindowRowsAxis(const RangeSets& sets, const StatementAccesses& reduce) {
  std::vector<const UOp*> axes;
  for (const UOp* r : reduce.node->src().subspan(1)) {
    if (r->range_type() == AxisType::kReduce) axes.push_back(r);
  }
  if (axes.size() != 2) return nullptr;
  const UOp* outer = axes[0]->range_axis() < axes[1]->range_axis() ? axes[0] : axes[1];
  bool slides = false;
  for (const UOp* load : reduce.loads) {
    const LinearForm form = ToLinear(load->src(1));
    const int64_t step = std::abs(form.CoefficientOf(outer));
    for (const UOp* r : sets.Members(sets.Of(load))) {
      const int64_t distance = std::abs(form.CoefficientOf(r));
      if (r->range_type() != AxisType::kUpcast || distance < 2) continue;  // 1: the lanes
      if (distance * (r->range_size() - 1) >= step) return nullptr;
      slides = true;
    }
  }
  return slides ? outer : nullptr;
}

std::vector<OutputTile> WindowTiles(const Scheduler& s, const RangeSets& sets,
                                    const StatementAccesses& reduce, const StatementAccesses& store,
                                    const UOp* lane) {
  constexpr size_t kMost = 24;
  Window w;
  if (!Describe(s, sets, reduce, store, lane, w)) return {};
  std::vector<OutputTile> tiles;
  for (int64_t vectors : {1, 2, 4, 8}) {
    if (w.lanes % (vectors * w.vector) != 0) continue;
    tiles.push_back({vectors * w.vector, nullptr, 1});
    for (const UOp* r : w.outputs) {
      for (int64_t rows = 2; rows <= std::min(r->range_size(), w.registers / 2 / vectors); ++rows) {
        tiles.push_back({vectors * w.vector, r, rows});
      }
    }
  }
  std::erase_if(tiles, [&](const OutputTile& t) {
    return t.lanes / w.vector * t.rows * w.places > kMostCopies;
  });
  std::vector<OutputTile> sorted =
      BestFirst(tiles, kMost, [&](const OutputTile& t) { return CyclesOf(w, t); });
  const OutputTile neighbours = TileOfNeighbours(w);
  if (neighbours.rows > 1 && TraitsOf(s.target()).window_rows_in_turn) {
    std::erase(sorted, neighbours);
    sorted.insert(sorted.begin(), neighbours);
  }
  return sorted;
}

}  // namespace quern
