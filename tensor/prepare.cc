#include "tensor/prepare.h"

#include "codegen/lower.h"
#include "rewrite/concat.h"

namespace quern {

struct ExecutionPlan::State {
  std::unique_ptr<CpuDevice> device;  // outlives the kernels
  std::unique_ptr<TuningDatabase> database;
  std::shared_ptr<UOpGraph> graph;
  std::vector<TensorInfo> arguments;
  std::vector<KernelReport> reports;

  struct Step {
    std::unique_ptr<CpuKernel> kernel;
    std::vector<int64_t> slots;  // of the kernel's parameters, in its order
  };
  std::vector<Step> steps;
  std::vector<AlignedMemory> intermediates;
  std::vector<void*> pointers;  // by slot; those of intermediates are set for good
  std::vector<int64_t> argument_slots;
};

ExecutionPlan::ExecutionPlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
ExecutionPlan::ExecutionPlan(ExecutionPlan&&) noexcept = default;
ExecutionPlan& ExecutionPlan::operator=(ExecutionPlan&&) noexcept = default;
ExecutionPlan::~ExecutionPlan() = default;

const std::vector<TensorInfo>& ExecutionPlan::arguments() const { return state_->arguments; }
const std::vector<KernelReport>& ExecutionPlan::reports() const { return state_->reports; }
const Target& ExecutionPlan::target() const { return state_->device->target(); }

absl::Status ExecutionPlan::Run(std::span<void* const> buffers) {
  if (buffers.size() != state_->argument_slots.size()) {
    return absl::InvalidArgumentError(Concat("run: ", buffers.size(), " buffers for ",
                                             state_->argument_slots.size(), " tensors"));
  }
  // A copy of its own, so that runs do not share arguments.
  std::vector<void*> pointers = state_->pointers;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i] == nullptr && state_->arguments[i].bytes() > 0) {
      return absl::InvalidArgumentError(
          Concat("run: no buffer for tensor ", state_->arguments[i].name));
    }
    pointers[static_cast<size_t>(state_->argument_slots[i])] = buffers[i];
  }
  std::vector<void*> arguments;
  for (State::Step& step : state_->steps) {
    arguments.clear();
    for (int64_t slot : step.slots) arguments.push_back(pointers[static_cast<size_t>(slot)]);
    step.kernel->Run(arguments);
  }
  return absl::OkStatus();
}

absl::StatusOr<ExecutionPlan> Prepare(const Program& program, const PrepareConfig& config,
                                      const SearchHooks& hooks) {
  auto state = std::make_unique<ExecutionPlan::State>();
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create(config.threads);
  if (!device.ok()) return device.status();
  state->device = *std::move(device);
  state->graph = program.graph;
  if (config.cache) {
    DatabaseOptions options;
    if (!config.cache_folder.empty()) options.folder = config.cache_folder;
    state->database = TuningDatabase::Open(options);
  }
  state->pointers.resize(program.tensors.size(), nullptr);
  for (const TensorInfo& tensor : program.tensors) {
    if (tensor.role != TensorRole::kIntermediate) {
      state->arguments.push_back(tensor);
      state->argument_slots.push_back(tensor.slot);
      continue;
    }
    AlignedMemory memory = AllocateAligned(tensor.bytes());
    if (memory == nullptr) {
      return absl::ResourceExhaustedError(
          Concat("prepare: no memory for ", tensor.bytes(), " bytes of ", tensor.name));
    }
    state->pointers[static_cast<size_t>(tensor.slot)] = memory.get();
    state->intermediates.push_back(std::move(memory));
  }
  const PrepareContext context{*state->device, state->database.get(), config, hooks};
  for (const KernelInfo& info : program.kernels) {
    absl::StatusOr<PreparedKernel> prepared = PrepareKernel(info.sink, context);
    if (!prepared.ok()) {
      return absl::Status(prepared.status().code(),
                          Concat("kernel ", info.name, ": ", prepared.status().message()));
    }
    ExecutionPlan::State::Step step;
    for (const ImageParam& param : prepared->kernel->image().params) {
      if (!param.temporary) step.slots.push_back(param.slot);
    }
    step.kernel = std::move(prepared->kernel);
    state->steps.push_back(std::move(step));
    state->reports.push_back(std::move(prepared->report));
  }
  return ExecutionPlan(std::move(state));
}

}  // namespace quern
