// Tunes C = A·B for this machine, runs it and prints a corner of the result.
#include <quern/optimizer/configuration.h>
#include <quern/tensor/notation.h>
#include <quern/tensor/prepare.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <vector>

namespace {

constexpr int64_t kSize = 128;

int Fail(const absl::Status& status) {
  std::cerr << status << "\n";
  return EXIT_FAILURE;
}

}  // namespace

int main() {
  // What to compute.
  absl::StatusOr<quern::Program> program = quern::ParseNotation(
      "C[i,j] = sum[k](A[i,k]*B[k,j])", {.sizes = {{"i", kSize}, {"j", kSize}, {"k", kSize}}});
  if (!program.ok()) return Fail(program.status());

  // How to choose the schedule: a beam search of at most five seconds, remembered on disk. (To let
  // BEAM=… and the other variables decide: quern::PrepareConfig::FromEnvironment().)
  absl::StatusOr<quern::PrepareConfig> config =
      quern::PrepareConfig::Builder()
          .Strategy(quern::OptStrategy::Beam{.width = 4, .seconds = 5})
          .Build();
  if (!config.ok()) return Fail(config.status());

  absl::StatusOr<quern::ExecutionPlan> plan = quern::Prepare(*program, *config);
  if (!plan.ok()) return Fail(plan.status());

  const quern::KernelReport& report = plan->reports()[0];
  std::cout << "actions: " << quern::ActionsToString(report.actions) << "\n";
  if (report.search.has_value()) {
    std::cout << "measured " << report.search->candidates << " candidates; the best takes "
              << report.search->seconds * 1e6 << " us\n";
  } else if (report.cached) {
    std::cout << "from the cache\n";
  }
  for (const std::string& note : report.notes) std::cout << "note: " << note << "\n";

  // Buffers stand in the order of plan->arguments(): A, B, C.
  std::vector<float> a(kSize * kSize, 0.5f), b(kSize * kSize, 2.0f), c(kSize * kSize);
  if (absl::Status s = plan->Run(std::vector<void*>{a.data(), b.data(), c.data()}); !s.ok()) {
    return Fail(s);
  }
  std::cout << "C[0,0] = " << c[0] << ", C[127,127] = " << c.back() << "\n";
  return c[0] == kSize && c.back() == kSize ? EXIT_SUCCESS : EXIT_FAILURE;
}
