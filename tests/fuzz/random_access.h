#ifndef QUERN_TESTS_FUZZ_RANDOM_ACCESS_H_
#define QUERN_TESTS_FUZZ_RANDOM_ACCESS_H_

#include <vector>

#include "rewrite/build.h"
#include "tests/fuzz/test_buffers.h"

namespace quern {

/// An element of a buffer: its offset, the gate (or nullptr) under which it lies inside, and how
/// many elements the buffer needs.
struct Place {
  const UOp* offset = nullptr;
  const UOp* gate = nullptr;
  int64_t elements = 1;
};

/// Makes random ways in which loops walk through a buffer.
class AccessGenerator {
 public:
  AccessGenerator(UOpGraph& graph, Random& random) : g_(graph), random_(random) {}

  /// Any place: axes in any order or left out, gaps, negative strides, padding, windows, splits.
  Place InputPlace(std::vector<const UOp*> ranges) {
    Shuffle(ranges);
    std::vector<Dimension> dimensions;
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (random_.Chance(20)) continue;  // A broadcast along this axis.
      if (i + 1 < ranges.size() && random_.Chance(20)) {
        dimensions.push_back(Pair(ranges[i], ranges[i + 1]));
        ++i;
      } else {
        dimensions.push_back(Single(ranges[i]));
      }
    }
    Place place = Join(dimensions, 10);
    if (place.elements > kMaxElements) {
      dimensions.clear();
      for (const UOp* r : ranges) dimensions.push_back({r, r->range_size(), nullptr});
      place = Join(dimensions, 0);
    }
    if (random_.Chance(20)) place.elements += random_.Below(4);
    return place;
  }

  /// A place of its own for each combination of the ranges; sometimes gated.
  Place OutputPlace(std::vector<const UOp*> ranges) {
    if (random_.Chance(30)) Shuffle(ranges);
    std::vector<Dimension> dimensions;
    for (const UOp* r : ranges) {
      dimensions.push_back(random_.Chance(10) ? Flipped(r)
                                              : Dimension{r, r->range_size(), nullptr});
    }
    Place place = Join(dimensions, 5);
    if (random_.Chance(10)) {
      const UOp* r = random_.Pick(ranges);
      place.gate = Lt(g_, r, C(random_.Between(0, r->range_size())));
    }
    return place;
  }

 private:
  static constexpr int64_t kMaxElements = 100000;

  // One axis of a buffer. The index lies in [0, extent) wherever the gate is true.
  struct Dimension {
    const UOp* index;
    int64_t extent;
    const UOp* gate;
  };

  const UOp* C(int64_t value) { return IndexConst(g_, value); }

  void Shuffle(std::vector<const UOp*>& ranges) {
    for (size_t i = ranges.size(); i > 1; --i) {
      std::swap(ranges[i - 1], ranges[random_.Below(static_cast<int64_t>(i))]);
    }
  }

  const UOp* Inside(const UOp* x, int64_t extent) {
    return And(g_, Binary(g_, Op::kLe, C(0), x), Lt(g_, x, C(extent)));
  }

  Dimension Flipped(const UOp* r) {
    const int64_t n = std::max<int64_t>(r->range_size(), 1);
    return {Add(g_, Mul(g_, r, C(-1)), C(n - 1)), n, nullptr};
  }

  Dimension Single(const UOp* r) {
    const int64_t n = r->range_size();
    switch (random_.Below(12)) {
      case 0:
        return Flipped(r);
      case 1: {  // Padding, or a part that is cut off.
        const UOp* x = Add(g_, r, C(random_.Between(-2, 2)));
        const int64_t extent = std::max<int64_t>(1, n + random_.Between(-2, 2));
        return {x, extent, Inside(x, extent)};
      }
      case 2: {  // Every second or third element.
        const int64_t step = random_.Between(2, 3);
        return {Add(g_, Mul(g_, r, C(step)), C(random_.Below(step))), n * step, nullptr};
      }
      case 3: {
        const int64_t c = random_.Between(1, 5);
        return {Binary(g_, Op::kFloorDiv, r, C(c)), (n + c - 1) / c, nullptr};
      }
      case 4: {
        const int64_t c = random_.Between(1, 5);
        return {Binary(g_, Op::kFloorMod, r, C(c)), c, nullptr};
      }
      default:
        return {r, n, nullptr};
    }
  }

  Dimension Pair(const UOp* a, const UOp* b) {
    const int64_t n = a->range_size();
    const int64_t m = b->range_size();
    switch (random_.Below(4)) {
      case 0:  // A window that slides.
        return {Add(g_, a, b), n + m - 1, nullptr};
      case 1: {  // The same with padding.
        const UOp* x = Add(g_, Add(g_, a, b), C(-random_.Between(1, 2)));
        const int64_t extent = std::max<int64_t>(1, n);
        return {x, extent, Inside(x, extent)};
      }
      case 2: {  // Two axes as one, a part of it.
        const UOp* flat = Add(g_, Mul(g_, a, C(m)), b);
        const int64_t c = random_.Between(2, 6);
        if (random_.Chance(50))
          return {Binary(g_, Op::kFloorDiv, flat, C(c)), (n * m + c - 1) / c, nullptr};
        return {Binary(g_, Op::kFloorMod, flat, C(c)), c, nullptr};
      }
      default: {  // Triangular.
        return {a, n, Lt(g_, b, Add(g_, a, C(random_.Between(0, 2))))};
      }
    }
  }

  // Lays the dimensions out, the last one innermost, with gaps now and then.
  Place Join(const std::vector<Dimension>& dimensions, int gaps_percent) {
    Place place;
    std::vector<int64_t> strides(dimensions.size());
    int64_t stride = 1;
    for (size_t i = dimensions.size(); i-- > 0;) {
      if (random_.Chance(gaps_percent)) stride *= random_.Between(2, 3);
      strides[i] = stride;
      place.elements += (dimensions[i].extent - 1) * stride;
      stride *= dimensions[i].extent;
    }
    for (size_t i = 0; i < dimensions.size(); ++i) {
      const UOp* x = dimensions[i].index;
      if (strides[i] != 1) x = Mul(g_, x, C(strides[i]));
      place.offset = place.offset == nullptr ? x : Add(g_, place.offset, x);
      const UOp* gate = dimensions[i].gate;
      if (gate == nullptr) continue;
      place.gate = place.gate == nullptr ? gate : And(g_, place.gate, gate);
    }
    if (place.offset == nullptr) place.offset = C(0);
    place.elements =
        std::max<int64_t>(place.elements, 1);  // An empty axis counts for less than one.
    return place;
  }

  UOpGraph& g_;
  Random& random_;
};

}  // namespace quern

#endif  // QUERN_TESTS_FUZZ_RANDOM_ACCESS_H_
