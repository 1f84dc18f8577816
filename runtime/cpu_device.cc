#include "runtime/cpu_device.h"

#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/TargetSelect.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "rewrite/concat.h"
#include "runtime/aligned_memory.h"
#include "runtime/cpu_target.h"
#include "runtime/part_by_part.h"
#include "runtime/thread_team.h"

namespace quern {
namespace {

absl::Status FromLlvm(llvm::Error error, std::string_view what) {
  return absl::InternalError(Concat(what, ": ", llvm::toString(std::move(error))));
}

// Scratch memory and temporaries of one run.
struct Workspace {
  std::vector<AlignedMemory> temporaries;  // by parameter; nullptr for the caller's
  AlignedMemory scratch;
  std::vector<void*> params;
};

class LoadedKernel : public CpuKernel {
 public:
  LoadedKernel(KernelImage image, int64_t cores, llvm::orc::LLJIT& jit,
               llvm::orc::JITDylib& library)
      : image_(std::move(image)), cores_(cores), jit_(jit), library_(library) {}

  ~LoadedKernel() override {
    llvm::consumeError(jit_.getExecutionSession().removeJITDylib(library_));
  }

  absl::Status Initialize() {
    for (const ImagePhase& phase : image_.phases) {
      llvm::Expected<llvm::orc::ExecutorAddr> address = jit_.lookup(library_, phase.symbol);
      if (!address) return FromLlvm(address.takeError(), Concat("load: ", phase.symbol));
      functions_.push_back(address->toPtr<KernelFunction>());
    }
    FindParts();
    const bool plain = std::none_of(image_.params.begin(), image_.params.end(),
                                    [](const ImageParam& param) { return param.temporary; });
    if (plain && image_.phases.size() == 1 && image_.phases[0].threads == 1 &&
        image_.phases[0].scratch_bytes == 0) {
      raw_ = functions_[0];
    }
    for (const ImageParam& param : image_.params) {
      kept_.push_back(param.kept ? AllocateAligned(param.bytes()) : nullptr);
      if (param.kept && kept_.back() == nullptr) {
        return absl::ResourceExhaustedError(
            Concat("load: no memory for ", param.bytes(), " bytes of packed constants"));
      }
    }
    std::unique_ptr<Workspace> workspace = MakeWorkspace();
    if (workspace == nullptr) {
      return absl::ResourceExhaustedError("load: no memory for the kernel's scratch buffers");
    }
    first_ = std::move(workspace);
    packed_ = std::none_of(image_.phases.begin(), image_.phases.end(),
                           [](const ImagePhase& phase) { return phase.once; });
    return absl::OkStatus();
  }

  void Run(std::span<void* const> buffers) override {
    if (raw_ != nullptr) return raw_(buffers.data(), nullptr, 0);
    if (!packed_.load(std::memory_order_acquire)) PackFirst(buffers);
    // One caller at a time uses the first workspace, without a lock; others get one of their own.
    if (!first_busy_.exchange(true, std::memory_order_acquire)) {
      RunIn(*first_, buffers);
      first_busy_.store(false, std::memory_order_release);
      return;
    }
    std::unique_ptr<Workspace> workspace = TakeWorkspace();
    RunIn(*workspace, buffers);
    std::lock_guard<std::mutex> lock(mutex_);
    spare_.push_back(std::move(workspace));
  }

  void PackConstants(std::span<void* const> buffers) override {
    std::unique_ptr<Workspace> workspace = TakeWorkspace();
    RunIn(*workspace, buffers, /*once=*/true);
    std::lock_guard<std::mutex> lock(mutex_);
    spare_.push_back(std::move(workspace));
    packed_.store(true, std::memory_order_release);
  }

  KernelFunction raw_function() const override { return raw_; }

  const KernelImage& image() const override { return image_; }

 private:
  static constexpr int64_t kLine = 64;

  // Threads' scratch areas start on different lines of different sets.
  int64_t ScratchStride(const ImagePhase& phase) const {
    return (phase.scratch_bytes + kLine - 1) / kLine * kLine + 2 * kLine;
  }

  void PackFirst(std::span<void* const> buffers) {
    std::lock_guard<std::mutex> lock(packing_);
    if (!packed_.load(std::memory_order_acquire)) PackConstants(buffers);
  }

  void RunIn(Workspace& workspace, std::span<void* const> buffers, bool once = false) {
    size_t next = 0;
    for (size_t i = 0; i < image_.params.size(); ++i) {
      if (!image_.params[i].temporary) workspace.params[i] = buffers[next++];
    }
    for (size_t i = 0; i < functions_.size(); ++i) {
      if (image_.phases[i].once == once && !RunsPartByPart(i)) RunPhase(i, workspace);
    }
    if (!once && !by_parts_.empty()) RunParts(workspace);
  }

  // With more threads than cores, phases that may run part by part do so.
  void FindParts() {
    int64_t threads = 0;
    for (size_t i = 0; i < image_.phases.size(); ++i) {
      const ImagePhase& phase = image_.phases[i];
      if (phase.once) continue;
      if (!phase.part_by_part || (threads != 0 && phase.threads != threads))
        return by_parts_.clear();
      threads = phase.threads;
      by_parts_.push_back(i);
    }
    if (threads <= cores_) by_parts_.clear();
  }

  bool RunsPartByPart(size_t phase) const {
    return !by_parts_.empty() && !image_.phases[phase].once;
  }

  // Of a phase's threads, those that may run at the same time.
  int64_t AtOnce(size_t phase) const {
    const int64_t threads = image_.phases[phase].threads;
    return RunsPartByPart(phase) ? std::min(threads, cores_) : threads;
  }

  std::unique_ptr<Workspace> MakeWorkspace() const {
    auto workspace = std::make_unique<Workspace>();
    for (size_t i = 0; i < image_.params.size(); ++i) {
      const ImageParam& param = image_.params[i];
      AlignedMemory memory;
      if (param.kept) {
        workspace->params.push_back(kept_[i].get());
        workspace->temporaries.push_back(nullptr);
        continue;
      }
      if (param.temporary) {
        memory = AllocateAligned(param.bytes());
        if (memory == nullptr) return nullptr;
      }
      workspace->params.push_back(memory.get());
      workspace->temporaries.push_back(std::move(memory));
    }
    int64_t scratch = 0;
    for (size_t i = 0; i < image_.phases.size(); ++i) {
      scratch = std::max(scratch, ScratchStride(image_.phases[i]) * AtOnce(i));
    }
    workspace->scratch = AllocateAligned(scratch);
    return workspace->scratch == nullptr ? nullptr : std::move(workspace);
  }

  std::unique_ptr<Workspace> TakeWorkspace() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!spare_.empty()) {
        std::unique_ptr<Workspace> workspace = std::move(spare_.back());
        spare_.pop_back();
        return workspace;
      }
    }
    std::unique_ptr<Workspace> workspace = MakeWorkspace();
    if (workspace == nullptr) std::abort();  // As a failing `new` would end.
    return workspace;
  }

  void RunPhase(size_t number, const Workspace& workspace) {
    const ImagePhase& phase = image_.phases[number];
    const KernelFunction function = functions_[number];
    void* const* params = workspace.params.data();
    auto* scratch = static_cast<char*>(workspace.scratch.get());
    if (phase.threads == 1) {
      function(params, scratch, 0);
      return;
    }
    const int64_t stride = ScratchStride(phase);
    ThreadTeam::OfThisThread().Run(phase.threads, [&](int64_t thread) {
      function(params, scratch + thread * stride, thread);
    });
  }

  void RunParts(const Workspace& workspace) {
    void* const* params = workspace.params.data();
    auto* scratch = static_cast<char*>(workspace.scratch.get());
    const Parts parts{.phases = static_cast<int64_t>(by_parts_.size()),
                      .count = image_.phases[by_parts_[0]].threads,
                      .at_once = AtOnce(by_parts_[0])};
    RunPartByPart(ThreadTeam::OfThisThread(), parts,
                  [&](int64_t phase, int64_t part, int64_t worker) {
                    const size_t i = by_parts_[static_cast<size_t>(phase)];
                    functions_[i](params, scratch + worker * ScratchStride(image_.phases[i]), part);
                  });
  }

  KernelImage image_;
  const int64_t cores_;
  llvm::orc::LLJIT& jit_;
  llvm::orc::JITDylib& library_;
  std::vector<KernelFunction> functions_;
  std::vector<size_t> by_parts_;  // phases that run part by part
  KernelFunction raw_ = nullptr;
  std::vector<AlignedMemory> kept_;  // by parameter: packed constants
  std::atomic<bool> packed_{false};
  std::mutex packing_;
  std::unique_ptr<Workspace> first_;
  std::atomic<bool> first_busy_{false};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> spare_;
};

class HostDevice : public CpuDevice {
 public:
  HostDevice(Target target, std::unique_ptr<llvm::orc::LLJIT> jit)
      : target_(std::move(target)), jit_(std::move(jit)) {}

  const Target& target() const override { return target_; }

  absl::StatusOr<std::unique_ptr<CpuKernel>> Load(KernelImage image) override {
    const std::string name = Concat("kernel", next_library_.fetch_add(1));
    llvm::Expected<llvm::orc::JITDylib&> library = jit_->createJITDylib(name);
    if (!library) return FromLlvm(library.takeError(), "load: new library");
    library->addGenerator(
        llvm::cantFail(llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
            jit_->getDataLayout().getGlobalPrefix())));
    std::unique_ptr<llvm::MemoryBuffer> object =
        llvm::MemoryBuffer::getMemBufferCopy(image.object, name);
    if (llvm::Error error = jit_->addObjectFile(*library, std::move(object))) {
      return FromLlvm(std::move(error), "load: object file");
    }
    auto kernel = std::make_unique<LoadedKernel>(std::move(image), target_.cores, *jit_, *library);
    if (absl::Status status = kernel->Initialize(); !status.ok()) return status;
    return kernel;
  }

 private:
  Target target_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::atomic<int64_t> next_library_{0};
};

}  // namespace

absl::StatusOr<std::unique_ptr<CpuDevice>> CpuDevice::Create(int threads) {
  if (threads < 0) {
    return absl::InvalidArgumentError(Concat("device: ", threads, " threads"));
  }
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> jit = llvm::orc::LLJITBuilder().create();
  if (!jit) return FromLlvm(jit.takeError(), "device: starting the linker");
  Target target = DetectCpu();
  if (threads > 0) target.cores = threads;
  return std::make_unique<HostDevice>(std::move(target), std::move(*jit));
}

}  // namespace quern
