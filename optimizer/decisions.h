#ifndef QUERN_OPTIMIZER_DECISIONS_H_
#define QUERN_OPTIMIZER_DECISIONS_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace quern {

/// Decisions to be taken otherwise than by the first way, by name.
using Deviations = std::map<std::string, int>;

/// What the heuristic decides. Its steps ask here wherever there is more than one way to go on,
/// the ways sorted by what they are believed to cost. Left alone the heuristic goes the first way
/// everywhere; told to deviate at one decision, it goes on from there as it would have otherwise.
/// So the search reaches schedules that differ from the heuristic's in the middle, with all that
/// follows from the difference: other registers, then packed, ordered and divided to fit them.
/// (Limited discrepancy search: Harvey and Ginsberg, IJCAI 1995.)
///
///     Decisions decisions({{"product-tile", 3}});
///     ApplyHeuristic(scheduler, decisions);  // with the fourth best tile
class Decisions {
 public:
  explicit Decisions(Deviations deviations = {}) : deviations_(std::move(deviations)) {}

  /// The way to go, 0 … ways - 1. A name that comes again gets a number: "unroll", "unroll 2".
  int Choose(std::string_view name, int ways);

  /// One of several things, the best of them first.
  template <typename T>
  const T& Pick(std::string_view name, const std::vector<T>& things) {
    return things[static_cast<size_t>(Choose(name, static_cast<int>(things.size())))];
  }

  /// What is believed of a yes or no, or its opposite.
  bool Confirm(std::string_view name, bool believed) { return (Choose(name, 2) == 0) == believed; }

  /// What was decided, in order, where there were several ways.
  struct Taken {
    std::string name;
    int way = 0;
    int ways = 0;
  };
  const std::vector<Taken>& taken() const { return taken_; }

  /// The deviations of this run with one decision changed, or one more: all of them, the best ways
  /// of every decision first.
  std::vector<Deviations> Neighbours() const;

 private:
  Deviations deviations_;
  std::map<std::string, int, std::less<>> counts_;
  std::vector<Taken> taken_;
};

}  // namespace quern

#endif  // QUERN_OPTIMIZER_DECISIONS_H_
