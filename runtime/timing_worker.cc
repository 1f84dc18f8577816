#include "runtime/timing_worker.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>

#include "rewrite/concat.h"
#include "runtime/aligned_memory.h"
#include "runtime/cpu_device.h"
#include "runtime/random_data.h"
#include "runtime/timing_protocol.h"

namespace quern {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The first run of a kernel that is shorter than this says more about cold code than about the
// kernel: it runs a few times before it is judged.
constexpr double kColdSeconds = 1e-3;
constexpr int kWarmRuns = 2;

constexpr int64_t kRedZone = 256;  // bytes before and after each buffer
constexpr unsigned char kRedByte = 0x5c;

// A buffer between two red zones.
struct GuardedBuffer {
  ImageParam param;
  AlignedMemory memory;
  AlignedMemory original;  // of a buffer that kernels read and write

  char* data() const { return static_cast<char*>(memory.get()) + kRedZone; }
  void PaintRedZones() {
    std::memset(memory.get(), kRedByte, kRedZone);
    std::memset(data() + param.bytes(), kRedByte, kRedZone);
  }
  bool RedZonesIntact() const {
    const char* before = static_cast<const char*>(memory.get());
    const char* after = data() + param.bytes();
    for (int64_t i = 0; i < kRedZone; ++i) {
      if (static_cast<unsigned char>(before[i]) != kRedByte) return false;
      if (static_cast<unsigned char>(after[i]) != kRedByte) return false;
    }
    return true;
  }
};

class Worker {
 public:
  TimingReply Answer(const TimingRequest& request) {
    if (request.fault == "segv") std::raise(SIGSEGV);
    if (request.fault == "exit") std::_Exit(1);
    if (request.fault == "hang") std::this_thread::sleep_for(std::chrono::hours(24));
    TimingReply reply;
    if (request.fault == "refuse") {
      reply.status = absl::ResourceExhaustedError("timing: an injected refusal to launch");
      return reply;
    }
    switch (request.command) {
      case TimingCommand::kSetup:
        reply.status = Setup(request);
        break;
      case TimingCommand::kLoad:
        reply.status = Load(request);
        break;
      case TimingCommand::kUnload:
        for (int64_t id : request.ids) kernels_.erase(id);
        break;
      case TimingCommand::kTime:
        Time(request, reply);
        break;
      case TimingCommand::kCompare:
        Compare(request, reply);
        break;
    }
    return reply;
  }

 private:
  absl::Status Setup(const TimingRequest& request) {
    kernels_.clear();
    buffers_.clear();
    absl::StatusOr<std::unique_ptr<CpuDevice>> device =
        CpuDevice::Create(static_cast<int>(request.threads));
    if (!device.ok()) return device.status();
    device_ = *std::move(device);
    seed_ = static_cast<uint64_t>(request.seed);
    for (const ImageParam& param : request.buffers) {
      GuardedBuffer& buffer = buffers_[param.slot];
      buffer.param = param;
      buffer.memory = AllocateAligned(param.bytes() + 2 * kRedZone);
      if (param.written && param.read) buffer.original = AllocateAligned(param.bytes());
      if (buffer.memory == nullptr || (param.written && param.read && buffer.original == nullptr)) {
        return absl::ResourceExhaustedError(
            Concat("timing: no memory for a buffer of ", param.bytes(), " bytes"));
      }
      buffer.PaintRedZones();
      FillRandom(param.dtype.scalar, param.elements, seed_ + static_cast<uint64_t>(param.slot),
                 buffer.data());
      if (buffer.original != nullptr) {
        std::memcpy(buffer.original.get(), buffer.data(), static_cast<size_t>(param.bytes()));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Load(const TimingRequest& request) {
    if (device_ == nullptr || request.ids.size() != 1) {
      return absl::FailedPreconditionError("timing: load before setup");
    }
    absl::StatusOr<KernelImage> image = ParseImage(request.image);
    if (!image.ok()) return image.status();
    for (const ImageParam& param : image->params) {
      if (param.temporary) continue;
      auto buffer = buffers_.find(param.slot);
      if (buffer == buffers_.end() || buffer->second.param.elements < param.elements) {
        return absl::InvalidArgumentError(
            Concat("timing: the kernel wants buffer ", param.slot, ", which is not set up"));
      }
    }
    absl::StatusOr<std::unique_ptr<CpuKernel>> kernel = device_->Load(*std::move(image));
    if (!kernel.ok()) return kernel.status();
    // What is packed once is not part of a run.
    const std::vector<ImageParam>& params = (*kernel)->image().params;
    if (std::any_of(params.begin(), params.end(), [](const ImageParam& p) { return p.kept; })) {
      (*kernel)->PackConstants(Pointers(**kernel));
    }
    kernels_[request.ids[0]] = *std::move(kernel);
    return absl::OkStatus();
  }

  CpuKernel* Find(int64_t id, TimingReply& reply) {
    auto found = kernels_.find(id);
    if (found != kernels_.end()) return found->second.get();
    reply.status = absl::NotFoundError(Concat("timing: no kernel ", id));
    return nullptr;
  }

  // Gives in-place operands their first values back, outside of what is timed.
  void Restore(const CpuKernel& kernel) {
    for (const ImageParam& param : kernel.image().params) {
      if (param.temporary) continue;
      GuardedBuffer& buffer = buffers_.at(param.slot);
      if (buffer.original == nullptr) continue;
      std::memcpy(buffer.data(), buffer.original.get(), static_cast<size_t>(param.bytes()));
    }
  }

  std::vector<void*> Pointers(const CpuKernel& kernel) {
    std::vector<void*> pointers;
    for (const ImageParam& param : kernel.image().params) {
      if (!param.temporary) pointers.push_back(buffers_.at(param.slot).data());
    }
    return pointers;
  }

  double RunTimed(CpuKernel& kernel, const std::vector<void*>& pointers, int64_t repeats) {
    const Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < repeats; ++i) kernel.Run(pointers);
    return SecondsSince(start) / static_cast<double>(repeats);
  }

  void Time(const TimingRequest& request, TimingReply& reply) {
    struct Running {
      CpuKernel* kernel;
      std::vector<void*> pointers;
      int64_t repeats = 1;
      double seconds = 0;  // of a first run
      bool in_place = false;
      bool aborted = false;
    };
    std::vector<Running> running;
    for (int64_t id : request.ids) {
      CpuKernel* kernel = Find(id, reply);
      if (kernel == nullptr) return;
      Running r = {kernel, Pointers(*kernel)};
      for (const ImageParam& p : kernel->image().params) {
        r.in_place |= !p.temporary && p.written && p.read;
      }
      running.push_back(std::move(r));
    }
    reply.seconds.resize(running.size());
    // The first runs warm caches and decide how often a sample repeats; they count only if they
    // are all there is.
    for (size_t i = 0; i < running.size(); ++i) {
      Running& r = running[i];
      Restore(*r.kernel);
      double first = RunTimed(*r.kernel, r.pointers, 1);
      for (int again = 0; again < kWarmRuns && first < kColdSeconds; ++again) {
        Restore(*r.kernel);
        first = std::min(first, RunTimed(*r.kernel, r.pointers, 1));
      }
      r.seconds = first;
      // (What is over sooner than one sample costs nothing to measure.)
      if (request.abort_seconds > 0 &&
          first > std::max(request.abort_seconds, request.min_sample_seconds)) {
        r.aborted = true;
        reply.seconds[i].push_back(first);
      } else if (!r.in_place && first < request.min_sample_seconds) {
        r.repeats = std::max<int64_t>(
            1, std::min<int64_t>(1000, static_cast<int64_t>(request.min_sample_seconds / first)));
      }
    }
    std::vector<size_t> order(running.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::mt19937_64 random(seed_ + static_cast<uint64_t>(request.rounds));
    for (int64_t round = 0; round < request.rounds; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      for (size_t i : order) {
        Running& r = running[i];
        if (r.aborted) continue;
        // What is short finds its data where its own last run has left them, not where others have.
        if (running.size() > 1 && !r.in_place && r.seconds < kColdSeconds) {
          RunTimed(*r.kernel, r.pointers, 1);
        }
        Restore(*r.kernel);
        reply.seconds[i].push_back(RunTimed(*r.kernel, r.pointers, r.repeats));
      }
    }
  }

  // Runs ids[1] on poisoned outputs, then ids[0] over what it left: an element that the reference
  // changes is wrong. So a reference that computes only a sample of the elements serves, too.
  void Compare(const TimingRequest& request, TimingReply& reply) {
    if (request.ids.size() != 2) {
      reply.status = absl::InvalidArgumentError("timing: compare takes two kernels");
      return;
    }
    CpuKernel* reference = Find(request.ids[0], reply);
    CpuKernel* candidate = Find(request.ids[1], reply);
    if (reference == nullptr || candidate == nullptr) return;
    for (auto& [slot, buffer] : buffers_) {
      if (buffer.param.written && !buffer.param.read) {
        FillPoison(buffer.param.dtype.scalar, buffer.param.elements, buffer.data());
      }
      buffer.PaintRedZones();
    }
    Restore(*candidate);
    candidate->Run(Pointers(*candidate));
    std::map<int64_t, AlignedMemory> results;
    for (auto& [slot, buffer] : buffers_) {
      if (!buffer.RedZonesIntact()) {
        reply.status =
            absl::InternalError(Concat("timing: the kernel wrote outside buffer ", slot));
        return;
      }
      if (!buffer.param.written) continue;
      AlignedMemory copy = AllocateAligned(buffer.param.bytes());
      if (copy == nullptr) {
        reply.status = absl::ResourceExhaustedError("timing: no memory to compare outputs");
        return;
      }
      std::memcpy(copy.get(), buffer.data(), static_cast<size_t>(buffer.param.bytes()));
      results[slot] = std::move(copy);
    }
    Restore(*reference);
    reference->Run(Pointers(*reference));
    reply.equal = true;
    for (auto& [slot, buffer] : buffers_) {
      if (!buffer.param.written) continue;
      const Difference d = CompareData(buffer.param.dtype.scalar, buffer.param.elements,
                                       buffer.data(), results.at(slot).get());
      reply.max_abs_error = std::max(reply.max_abs_error, d.max_abs);
      reply.max_rel_error = std::max(reply.max_rel_error, d.max_rel);
      if (!(d.max_rel <= request.tolerance)) reply.equal = false;
    }
  }

  std::unique_ptr<CpuDevice> device_;
  std::map<int64_t, GuardedBuffer> buffers_;  // by slot
  std::map<int64_t, std::unique_ptr<CpuKernel>> kernels_;
  uint64_t seed_ = 0;
};

}  // namespace

int RunTimingWorker(int in, int out) {
  Worker worker;
  while (true) {
    absl::StatusOr<std::string> message = ReceiveMessage(in, 0);
    if (!message.ok()) return 0;  // The parent has ended.
    absl::StatusOr<TimingRequest> request = ParseRequest(*message);
    TimingReply reply;
    if (request.ok()) {
      reply = worker.Answer(*request);
    } else {
      reply.status = request.status();
    }
    if (!SendMessage(out, SerializeReply(reply)).ok()) return 0;
  }
}

}  // namespace quern
