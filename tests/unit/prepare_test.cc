#include "tensor/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "optimizer/heuristic.h"
#include "optimizer/scheduler.h"
#include "rewrite/build.h"
#include "runtime/cpu_target.h"
#include "tests/unit/formula_kernel.h"

namespace quern {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class PrepareTest : public ::testing::Test {
 protected:
  PrepareTest() : kernel_(MatmulKernel(16, 32, 24)), device_(*CpuDevice::Create(2)) {
    folder_ = fs::path(::testing::TempDir()) /
              ("quern_prepare_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
  }
  ~PrepareTest() override {
    std::error_code ignored;
    fs::permissions(folder_, fs::perms::owner_all, ignored);
    fs::remove_all(folder_, ignored);
  }

  std::unique_ptr<TuningDatabase> OpenDatabase() {
    DatabaseOptions options;
    options.folder = folder_;
    options.warn = [this](std::string_view w) { warnings_.emplace_back(w); };
    return TuningDatabase::Open(std::move(options));
  }

  static PrepareConfig Config(OptStrategy strategy) {
    absl::StatusOr<PrepareConfig> config =
        PrepareConfig::Builder().Strategy(std::move(strategy)).Build();
    QUERN_CHECK(config.ok());
    return *config;
  }
  static PrepareConfig Beam() { return Config(OptStrategy::Beam{.width = 1, .seconds = 1}); }

  // Prepares, and runs the result against the interpreter.
  KernelReport Prepared(const PrepareConfig& config, TuningDatabase* database,
                        SearchHooks hooks = {}) {
    const PrepareContext context{*device_, database, config, std::move(hooks)};
    absl::StatusOr<PreparedKernel> prepared = PrepareKernel(kernel_.sink, context);
    if (!prepared.ok()) {
      ADD_FAILURE() << prepared.status();
      return {};
    }
    const KernelBuffers expected(kernel_.sink);
    const KernelBuffers actual(kernel_.sink);
    EXPECT_TRUE(Interpret(kernel_.sink, expected.Views()).ok());
    prepared->kernel->Run(actual.For(prepared->kernel->image()));
    EXPECT_EQ(actual.Compare(expected, ToleranceFor(kernel_.sink)), "");
    return prepared->report;
  }

  std::vector<Action> HeuristicActions() {
    Scheduler scheduler(*kernel_.graph, kernel_.sink, device_->target());
    ApplyHeuristic(scheduler);
    return scheduler.actions();
  }

  FormulaKernel kernel_;
  std::unique_ptr<CpuDevice> device_;
  fs::path folder_;
  std::vector<std::string> warnings_;
};

TEST_F(PrepareTest, StrategiesChooseTheSchedule) {
  EXPECT_THAT(Prepared(Config(OptStrategy::NoOpt{}), nullptr).actions, IsEmpty());
  EXPECT_EQ(Prepared(Config(OptStrategy::Heuristic{}), nullptr).actions, HeuristicActions());
  const std::vector<Action> list = {{ActionKind::kUpcast, 1, 8}, {ActionKind::kUnroll, 0, 2}};
  EXPECT_EQ(Prepared(Config(OptStrategy::Explicit{list}), nullptr).actions, list);
  const KernelReport beam = Prepared(Beam(), nullptr);
  EXPECT_TRUE(beam.search.has_value());
  EXPECT_FALSE(beam.cached);
  EXPECT_THAT(beam.strategy, HasSubstr("width=1"));
  EXPECT_THAT(beam.notes, IsEmpty());
}

TEST_F(PrepareTest, ExplicitActionsThatDoNotApplyAreAnError) {
  const PrepareConfig config =
      Config(OptStrategy::Explicit{{{ActionKind::kUpcast, 0, 4}, {ActionKind::kUpcast, 1, 7}}});
  const PrepareContext context{*device_, nullptr, config, {}};
  const absl::StatusOr<PreparedKernel> prepared = PrepareKernel(kernel_.sink, context);
  EXPECT_EQ(prepared.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(prepared.status().message()),
              HasSubstr("UPCAST(1,7): 7 does not divide the size 32"));
}

TEST_F(PrepareTest, TheSecondRunNeitherSearchesNorCompiles) {
  const KernelReport first = Prepared(Beam(), OpenDatabase().get());
  ASSERT_TRUE(first.search.has_value());
  EXPECT_FALSE(first.cached);
  EXPECT_FALSE(first.code_cached);
  EXPECT_GT(first.compile_ms, 0);
  SearchHooks hooks;
  hooks.progress = [](const SearchProgress&) { ADD_FAILURE() << "a second search"; };
  const KernelReport second = Prepared(Beam(), OpenDatabase().get(), hooks);
  EXPECT_TRUE(second.cached);
  EXPECT_TRUE(second.code_cached);
  EXPECT_FALSE(second.search.has_value());
  EXPECT_EQ(second.compile_ms, 0);
  EXPECT_EQ(second.actions, first.actions);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(PrepareTest, TheHeuristicsCodeIsCachedToo) {
  const PrepareConfig config = Config(OptStrategy::Heuristic{});
  EXPECT_FALSE(Prepared(config, OpenDatabase().get()).code_cached);
  EXPECT_TRUE(Prepared(config, OpenDatabase().get()).code_cached);
}

TEST_F(PrepareTest, OtherKnobsAreOtherEntries) {
  Prepared(Beam(), OpenDatabase().get());
  const auto searched = [&](const PrepareConfig& config) {
    return Prepared(config, OpenDatabase().get()).search.has_value();
  };
  EXPECT_FALSE(searched(Beam()));
  EXPECT_TRUE(searched(Config(OptStrategy::Beam{.width = 2, .seconds = 1})));
  PrepareConfig reassoc = Beam();
  reassoc.float_reassoc = true;
  EXPECT_TRUE(searched(reassoc));
  // Another kernel over the same shapes.
  kernel_ = KernelOf("C[i,j] = sum[k](A[i,k]*B[k,j]+A[i,k])", "i=16,j=32,k=24");
  EXPECT_TRUE(searched(Beam()));
  // The same with other strides.
  kernel_ = KernelOf("C[i,j] = sum[k](A[i,k]*B[j,k])", "i=16,j=32,k=24");
  EXPECT_TRUE(searched(Beam()));
  // Other threads.
  kernel_ = MatmulKernel(16, 32, 24);
  device_ = *CpuDevice::Create(1);
  EXPECT_TRUE(searched(Beam()));
}

TEST_F(PrepareTest, ACutCacheFileIsSetAside) {
  std::string path;
  {
    std::unique_ptr<TuningDatabase> database = OpenDatabase();
    Prepared(Beam(), database.get());
    path = database->path();
  }
  for (const char* extra : {"-wal", "-shm"}) fs::remove(path + extra);
  fs::resize_file(path, fs::file_size(path) / 2);
  const KernelReport report = Prepared(Beam(), OpenDatabase().get());
  EXPECT_FALSE(report.cached && report.code_cached);
  EXPECT_THAT(warnings_, Contains(HasSubstr("damaged")));
  warnings_.clear();
  const KernelReport again = Prepared(Beam(), OpenDatabase().get());
  EXPECT_TRUE(again.cached);
  EXPECT_TRUE(again.code_cached);
  EXPECT_THAT(warnings_, IsEmpty());
}

// The entry is whole, the code behind it is not.
TEST_F(PrepareTest, DamagedObjectCodeIsCompiledAgain) {
  const PrepareConfig config = Config(OptStrategy::Heuristic{});
  Prepared(config, nullptr);
  Scheduler scheduler(*kernel_.graph, kernel_.sink, device_->target());
  ASSERT_TRUE(scheduler.ApplyAll(HeuristicActions()).ok());
  std::unique_ptr<TuningDatabase> database = OpenDatabase();
  ObjectKey key;
  key.ast = scheduler.kernel()->hash;
  key.device = TargetFingerprint(device_->target());
  key.compiler = Concat("llvm ", LlvmVersion(), " schema ", kTuningSchema);
  key.flags = "reassoc=0 rewrites=-1";
  Prepared(config, database.get());
  ASSERT_TRUE(database->FindObject(key).has_value()) << "the key is not what it was";
  KernelImage image;
  image.object = "not an object file";
  image.phases = {{.symbol = "f", .threads = 1, .scratch_bytes = 0}};
  const std::string parseable = SerializeImage(image);
  for (const std::string& bytes : {std::string("rubbish"), parseable}) {
    database->StoreObject(key, std::as_bytes(std::span(bytes.data(), bytes.size())));
    const KernelReport report = Prepared(config, database.get());
    EXPECT_FALSE(report.code_cached);
    EXPECT_TRUE(Prepared(config, database.get()).code_cached);
  }
}

TEST_F(PrepareTest, AFolderThatCannotBeMadeIsNoHindrance) {
  folder_ = "/proc/quern/cache";
  std::unique_ptr<TuningDatabase> database = OpenDatabase();
  EXPECT_FALSE(database->enabled());
  EXPECT_THAT(warnings_, Not(IsEmpty()));
  EXPECT_TRUE(Prepared(Beam(), database.get()).search.has_value());
  EXPECT_TRUE(Prepared(Beam(), database.get()).search.has_value());
}

// Root may write everywhere; so that the folder is read-only for it, too, another user takes over.
class WithoutRootRights {
 public:
  WithoutRootRights() : root_(geteuid() == 0) {
    if (root_) EXPECT_EQ(seteuid(65534), 0);
  }
  ~WithoutRootRights() {
    if (root_) EXPECT_EQ(seteuid(0), 0);
  }

 private:
  const bool root_;
};

TEST_F(PrepareTest, AReadOnlyFolderIsNoHindrance) {
  using fs::perms;
  Prepared(Beam(), OpenDatabase().get());
  for (const auto& file : fs::directory_iterator(folder_)) {
    fs::permissions(file.path(), perms::owner_read | perms::group_read | perms::others_read);
  }
  fs::permissions(folder_,
                  perms::owner_read | perms::owner_exec | perms::others_read | perms::others_exec);
  const WithoutRootRights user;
  std::unique_ptr<TuningDatabase> database = OpenDatabase();
  // The old entry is found or searched anew; what is new is not kept, which is said once.
  const KernelReport report = Prepared(Beam(), database.get());
  EXPECT_TRUE(report.cached || report.search.has_value());
  const PrepareConfig other = Config(OptStrategy::Heuristic{});
  EXPECT_FALSE(Prepared(other, database.get()).code_cached);
  EXPECT_FALSE(Prepared(other, database.get()).code_cached);
  EXPECT_THAT(warnings_, SizeIs(1));
}

TEST_F(PrepareTest, ACacheOfAnotherCpuIsNotUsed) {
  Prepared(Beam(), OpenDatabase().get());
  std::unique_ptr<TuningDatabase> database = OpenDatabase();
  std::vector<TuningRecord> records = *database->List();
  ASSERT_THAT(records, SizeIs(1));
  ASSERT_TRUE(database->Clear().ok());
  Target other = device_->target();
  other.features.emplace_back("another-feature");
  records[0].key.device = TargetFingerprint(other);
  ASSERT_TRUE(database->Add(records).ok());
  const KernelReport report = Prepared(Beam(), database.get());
  EXPECT_FALSE(report.cached);
  EXPECT_TRUE(report.search.has_value());
  EXPECT_THAT(*database->List(), SizeIs(2));  // Both are kept.
}

TEST_F(PrepareTest, StoredActionsThatDoNotApplyAreSearchedAgain) {
  Prepared(Beam(), OpenDatabase().get());
  for (const char* stale : {"UPCAST(0,7)", "UPCAST(9,4)", "NO_SUCH_ACTION(1)", "UPCAST("}) {
    std::unique_ptr<TuningDatabase> database = OpenDatabase();
    std::vector<TuningRecord> records = *database->List();
    ASSERT_THAT(records, SizeIs(1));
    database->Store(records[0].key, {.actions = stale, .seconds = 1e-9});
    const KernelReport report = Prepared(Beam(), database.get());
    EXPECT_FALSE(report.cached) << stale;
    EXPECT_TRUE(report.search.has_value()) << stale;
    EXPECT_THAT(report.notes, Contains(HasSubstr("does not apply any more"))) << stale;
    EXPECT_TRUE(Prepared(Beam(), database.get()).cached) << stale;  // The new one replaced it.
  }
}

TEST_F(PrepareTest, AFailedSearchFallsBackToTheHeuristic) {
  SearchHooks hooks;
  hooks.inject_fault = [](Candidate& c) { c.fault = "segv"; };
  std::unique_ptr<TuningDatabase> database = OpenDatabase();
  const KernelReport report = Prepared(Beam(), database.get(), hooks);
  EXPECT_FALSE(report.search.has_value());
  EXPECT_EQ(report.actions, HeuristicActions());
  EXPECT_THAT(report.notes, Contains(HasSubstr("the search failed")));
  // The failure is not remembered.
  EXPECT_THAT(*database->List(), IsEmpty());
  EXPECT_TRUE(Prepared(Beam(), database.get()).search.has_value());
}

TEST_F(PrepareTest, BrokenKernelsAreErrors) {
  UOpGraph g;
  const UOp* i = Range(g, 100, 0, AxisType::kLoop);
  const UOp* store = Store(g, Index(g, Param(g, kF32Type, 0, 64), i), FloatConst(g, kF32Type, 1));
  const PrepareConfig config = Config(OptStrategy::Heuristic{});
  const PrepareContext context{*device_, nullptr, config, {}};
  EXPECT_FALSE(PrepareKernel(Sink(g, std::vector<const UOp*>{store}), context).ok());
}

TEST(PrepareProgramTest, RunsAllKernelsOfAProgram) {
  NotationOptions options;
  options.sizes = {{"i", 3}, {"j", 5}, {"k", 4}};
  options.fuse = false;
  const absl::StatusOr<Program> program =
      ParseNotation("T[i,j] = sum[k](A[i,k]*B[k,j]); C[i,j] = T[i,j]+1", options);
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_THAT(program->kernels, SizeIs(2));
  absl::StatusOr<PrepareConfig> config = PrepareConfig::Builder().Cache(false).Build();
  absl::StatusOr<ExecutionPlan> plan = Prepare(*program, *config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->reports(), SizeIs(2));
  std::vector<float> a(12, 1), b(20, 2), c(15, -1);
  std::vector<void*> buffers;
  for (const TensorInfo& t : plan->arguments()) {
    buffers.push_back(t.name == "A" ? a.data() : t.name == "B" ? b.data() : c.data());
  }
  ASSERT_THAT(buffers, SizeIs(3));
  ASSERT_TRUE(plan->Run(buffers).ok());
  EXPECT_THAT(c, testing::Each(9.0f));

  buffers.pop_back();
  EXPECT_EQ(plan->Run(buffers).code(), absl::StatusCode::kInvalidArgument);
  buffers.push_back(nullptr);
  EXPECT_THAT(std::string(plan->Run(buffers).message()), HasSubstr("no buffer for tensor"));
}

absl::StatusOr<ExecutionPlan> PlanOf(std::string_view formula, std::string_view sizes,
                                     int threads) {
  NotationOptions options;
  QUERN_CHECK(ParseSizes(sizes, options).ok());
  absl::StatusOr<Program> program = ParseNotation(formula, options);
  if (!program.ok()) return program.status();
  absl::StatusOr<PrepareConfig> config =
      PrepareConfig::Builder().Threads(threads).Cache(false).Build();
  if (!config.ok()) return config.status();
  return Prepare(*program, *config);
}

TEST(RawFunctionTest, DoesWhatRunDoes) {
  absl::StatusOr<ExecutionPlan> plan =
      PlanOf("C[i,j] = sum[k](A[i,k]*B[k,j])", "i=16,j=16,k=16", 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const KernelFunction function = plan->raw_function();
  ASSERT_NE(function, nullptr);
  std::vector<float> a(256), b(256), c(256), expected(256);
  FillRandom(ScalarType::kF32, 256, 1, a.data());
  FillRandom(ScalarType::kF32, 256, 2, b.data());
  ASSERT_TRUE(plan->Run(std::vector<void*>{a.data(), b.data(), expected.data()}).ok());
  const std::vector<void*> pointers = {a.data(), b.data(), c.data()};
  function(pointers.data(), nullptr, 0);
  EXPECT_EQ(c, expected);
}

// What needs threads, scratch memory, or a second kernel, has none.
TEST(RawFunctionTest, OnlyWhereNothingElseIsNeeded) {
  const auto raw = [](std::string_view formula, std::string_view sizes, int threads) {
    absl::StatusOr<ExecutionPlan> plan = PlanOf(formula, sizes, threads);
    QUERN_CHECK(plan.ok());
    return plan->raw_function() != nullptr;
  };
  const char* product = "C[i,j] = sum[k](A[i,k]*B[k,j])";
  EXPECT_TRUE(raw(product, "i=32,j=32,k=32", 1));
  EXPECT_FALSE(raw(product, "i=512,j=512,k=512", 1));  // packs
  EXPECT_FALSE(
      raw("D[i,j] = sum[k](A[i,k]*B[k,j]); E[i,j] = sum[k](D[i,k]*B[k,j])", "i=32,j=32,k=32", 1));
  if (DetectCpu().cores >= 2) EXPECT_FALSE(raw("y[i] = x[i]*2", "i=16777216", 2));
}

}  // namespace
}  // namespace quern
