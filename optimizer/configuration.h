#ifndef QUERN_OPTIMIZER_CONFIGURATION_H_
#define QUERN_OPTIMIZER_CONFIGURATION_H_

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/action.h"

namespace quern {

/// How a schedule is chosen: one of the structs below, each with its own knobs.
class OptStrategy {
 public:
  /// Loops as they are written.
  struct NoOpt {
    bool operator==(const NoOpt&) const = default;
  };
  /// The fixed steps of optimizer/heuristic.h.
  struct Heuristic {
    bool operator==(const Heuristic&) const = default;
  };
  /// Beam search with measured candidates.
  struct Beam {
    int width = 8;        ///< schedules kept after each round
    double seconds = 15;  ///< per kernel; the best so far is used when it is over
    bool operator==(const Beam&) const = default;
  };
  /// These actions and no others.
  struct Explicit {
    std::vector<Action> actions{};
    bool operator==(const Explicit&) const = default;
  };
  using Variant = std::variant<NoOpt, Heuristic, Beam, Explicit>;

  template <typename T>
    requires std::constructible_from<Variant, T>
  OptStrategy(T choice) : choice_(std::move(choice)) {}  // NOLINT(google-explicit-constructor)
  OptStrategy() : choice_(Heuristic{}) {}

  /// The chosen struct if it is a T, else nullptr.
  template <typename T>
  const T* As() const {
    return std::get_if<T>(&choice_);
  }
  const Variant& variant() const { return choice_; }
  bool operator==(const OptStrategy&) const = default;

  /// With every knob that changes the result: "heuristic", "beam width=8 seconds=15". Part of the
  /// key under which results are cached.
  std::string Describe() const;
  absl::Status Validate() const;

 private:
  Variant choice_;
};

/// Everything that Prepare can be told. Made by the builder, which checks it.
struct PrepareConfig {
  OptStrategy strategy;
  int threads = 0;                       ///< that a kernel may use; 0: all cores
  bool cache = true;                     ///< use the database of results and object code
  std::string cache_folder;              ///< "": DefaultCacheFolder()
  bool float_reassoc = false;            ///< allow algebra that is not exact for floats
  bool verify = false;                   ///< verify the IR after every pass
  std::optional<int64_t> rewrite_limit;  ///< stop rewriting after so many steps, to bisect
  uint64_t seed = 0;                     ///< of random inputs while measuring
  /// What the user should be told, such as that NOOPT=1 wins over BEAM=8.
  std::vector<std::string> notes;

  class Builder;
  /// Reads BEAM, NOOPT and QUERN_* from the environment of the process (docs/configuration.md).
  static absl::StatusOr<PrepareConfig> FromEnvironment();
};

/// Collects settings; Build checks them together.
///
///     auto config = PrepareConfig::Builder().Strategy(OptStrategy::Beam{.width = 8}).Build();
class PrepareConfig::Builder {
 public:
  Builder() = default;
  /// Begins with another configuration, such as that of the environment.
  explicit Builder(PrepareConfig config) : config_(std::move(config)) {}

  Builder& Strategy(OptStrategy strategy) {
    config_.strategy = std::move(strategy);
    return *this;
  }
  Builder& Threads(int threads) {
    config_.threads = threads;
    return *this;
  }
  Builder& Cache(bool on) {
    config_.cache = on;
    return *this;
  }
  Builder& CacheFolder(std::string folder) {
    config_.cache_folder = std::move(folder);
    return *this;
  }
  Builder& FloatReassoc(bool on) {
    config_.float_reassoc = on;
    return *this;
  }
  Builder& Verify(bool on) {
    config_.verify = on;
    return *this;
  }
  Builder& RewriteLimit(std::optional<int64_t> limit) {
    config_.rewrite_limit = limit;
    return *this;
  }
  Builder& Seed(uint64_t seed) {
    config_.seed = seed;
    return *this;
  }

  absl::StatusOr<PrepareConfig> Build() const;

 private:
  PrepareConfig config_;
};

}  // namespace quern

#endif  // QUERN_OPTIMIZER_CONFIGURATION_H_
