#include "optimizer/configuration.h"

#include <cmath>

#include "optimizer/environment.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

}  // namespace

std::string OptStrategy::Describe() const {
  return std::visit(
      Overloaded{
          [](const NoOpt&) -> std::string { return "noopt"; },
          [](const Heuristic&) -> std::string { return "heuristic"; },
          [](const Beam& b) { return Concat("beam width=", b.width, " seconds=", b.seconds); },
          [](const Explicit& e) { return Concat("apply ", ActionsToString(e.actions)); },
      },
      choice_);
}

absl::Status OptStrategy::Validate() const {
  const Beam* beam = As<Beam>();
  if (beam == nullptr) return absl::OkStatus();
  if (beam->width < 1 || beam->width > 1000) {
    return absl::InvalidArgumentError(
        Concat("beam width ", beam->width, ": must be from 1 to 1000"));
  }
  if (!(beam->seconds > 0) || !std::isfinite(beam->seconds)) {
    return absl::InvalidArgumentError(
        Concat("time limit of a beam search of ", beam->seconds, " s: must be more than 0"));
  }
  return absl::OkStatus();
}

absl::StatusOr<PrepareConfig> PrepareConfig::FromEnvironment() {
  return ConfigFromEnvironment(ProcessEnvironment());
}

absl::StatusOr<PrepareConfig> PrepareConfig::Builder::Build() const {
  if (absl::Status s = config_.strategy.Validate(); !s.ok()) return s;
  if (config_.threads < 0 || config_.threads > 1024) {
    return absl::InvalidArgumentError(
        Concat("threads ", config_.threads, ": must be from 0 (all cores) to 1024"));
  }
  if (config_.rewrite_limit.has_value() && *config_.rewrite_limit < 0) {
    return absl::InvalidArgumentError(
        Concat("rewrite limit ", *config_.rewrite_limit, ": must not be negative"));
  }
  return config_;
}

}  // namespace quern
