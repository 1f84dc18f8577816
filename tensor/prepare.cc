#include "tensor/prepare.h"

#include <map>

#include "absl/container/inlined_vector.h"
#include "rewrite/concat.h"

namespace quern {

struct ExecutionPlan::State {
  std::unique_ptr<CpuDevice> device;  // outlives the kernels
  std::unique_ptr<TuningDatabase> database;
  std::shared_ptr<UOpGraph> graph;
  std::vector<TensorInfo> arguments;
  std::vector<KernelReport> reports;

  // Where a kernel's parameter comes from: memory of the plan, or an argument.
  struct Source {
    void* intermediate = nullptr;
    size_t argument = 0;
  };
  using Pointers = absl::InlinedVector<void*, 16>;
  struct Step {
    std::unique_ptr<CpuKernel> kernel;
    std::vector<Source> sources;  // in the order of the kernel's parameters
    bool in_order = false;        // the sources are the plan's arguments as they stand
    bool once = false;            // it writes a constant intermediate

    State::Pointers Pointers(std::span<void* const> buffers) const {
      State::Pointers pointers;
      for (const Source& source : sources) {
        pointers.push_back(source.intermediate != nullptr ? source.intermediate
                                                          : buffers[source.argument]);
      }
      return pointers;
    }
  };
  std::vector<Step> steps;
  std::vector<AlignedMemory> intermediates;
  bool once_to_run = false;  // steps that run once have not run yet
};

ExecutionPlan::ExecutionPlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
ExecutionPlan::ExecutionPlan(ExecutionPlan&&) noexcept = default;
ExecutionPlan& ExecutionPlan::operator=(ExecutionPlan&&) noexcept = default;
ExecutionPlan::~ExecutionPlan() = default;

const std::vector<TensorInfo>& ExecutionPlan::arguments() const { return state_->arguments; }
const std::vector<KernelReport>& ExecutionPlan::reports() const { return state_->reports; }
const Target& ExecutionPlan::target() const { return state_->device->target(); }

absl::Status ExecutionPlan::CheckBuffers(std::span<void* const> buffers) const {
  if (buffers.size() != state_->arguments.size()) {
    return absl::InvalidArgumentError(
        Concat("run: ", buffers.size(), " buffers for ", state_->arguments.size(), " tensors"));
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i] == nullptr && state_->arguments[i].bytes() > 0) {
      return absl::InvalidArgumentError(
          Concat("run: no buffer for tensor ", state_->arguments[i].name));
    }
  }
  return absl::OkStatus();
}

absl::Status ExecutionPlan::Run(std::span<void* const> buffers) {
  if (absl::Status s = CheckBuffers(buffers); !s.ok()) return s;
  for (State::Step& step : state_->steps) {
    if (step.once && !state_->once_to_run) continue;
    if (step.in_order) {
      step.kernel->Run(buffers);
    } else {
      step.kernel->Run(step.Pointers(buffers));
    }
  }
  // Without such steps it is only read: several runs may be in progress.
  if (state_->once_to_run) state_->once_to_run = false;
  return absl::OkStatus();
}

KernelFunction ExecutionPlan::raw_function() const {
  if (state_->steps.size() != 1) return nullptr;
  const State::Step& step = state_->steps[0];
  return step.in_order ? step.kernel->raw_function() : nullptr;
}

absl::Status ExecutionPlan::PackConstants(std::span<void* const> buffers) {
  if (absl::Status s = CheckBuffers(buffers); !s.ok()) return s;
  for (State::Step& step : state_->steps) {
    const State::Pointers pointers = step.Pointers(buffers);
    step.kernel->PackConstants(pointers);
    if (step.once) step.kernel->Run(pointers);
  }
  if (state_->once_to_run) state_->once_to_run = false;
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
  std::map<int64_t, ExecutionPlan::State::Source> by_slot;
  for (const TensorInfo& tensor : program.tensors) {
    if (tensor.role != TensorRole::kIntermediate) {
      by_slot[tensor.slot].argument = state->arguments.size();
      state->arguments.push_back(tensor);
      continue;
    }
    AlignedMemory memory = AllocateAligned(tensor.bytes());
    if (memory == nullptr) {
      return absl::ResourceExhaustedError(
          Concat("prepare: no memory for ", tensor.bytes(), " bytes of ", tensor.name));
    }
    by_slot[tensor.slot].intermediate = memory.get();
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
      if (!param.temporary) step.sources.push_back(by_slot.at(param.slot));
    }
    step.in_order = step.sources.size() == state->arguments.size();
    for (size_t i = 0; i < step.sources.size(); ++i) {
      step.in_order =
          step.in_order && step.sources[i].intermediate == nullptr && step.sources[i].argument == i;
    }
    const TensorInfo& output = program.tensors[info.output];
    step.once = output.constant && output.role == TensorRole::kIntermediate;
    state->once_to_run |= step.once;
    step.kernel = std::move(prepared->kernel);
    state->steps.push_back(std::move(step));
    state->reports.push_back(std::move(prepared->report));
  }
  return ExecutionPlan(std::move(state));
}

}  // namespace quern
