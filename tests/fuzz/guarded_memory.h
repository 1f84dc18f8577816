#ifndef QUERN_TESTS_FUZZ_GUARDED_MEMORY_H_
#define QUERN_TESTS_FUZZ_GUARDED_MEMORY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rewrite/check.h"
#include "rewrite/interpret.h"
#include "tests/fuzz/random_kernel.h"

namespace quern {

enum class Flush : uint8_t {
  kBegin,  ///< the first byte follows an unreadable page
  kEnd,    ///< the last byte precedes one; only the elements' own alignment is kept
};

/// Memory between two pages that can be neither read nor written: whatever leaves it on the flush
/// side faults at once.
class GuardedMemory {
 public:
  GuardedMemory(int64_t bytes, Flush flush) : bytes_(bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t inner = (static_cast<size_t>(bytes) + page - 1) / page * page;
    mapped_ = inner + 2 * page;
    base_ = static_cast<std::byte*>(
        mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    QUERN_CHECK(base_ != MAP_FAILED);
    if (inner > 0) QUERN_CHECK(mprotect(base_ + page, inner, PROT_READ | PROT_WRITE) == 0);
    data_ = flush == Flush::kBegin ? base_ + page : base_ + page + inner - bytes;
  }
  GuardedMemory(GuardedMemory&& other) noexcept { *this = std::move(other); }
  GuardedMemory& operator=(GuardedMemory&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~GuardedMemory() {
    if (base_ != nullptr) munmap(base_, mapped_);
  }

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* base_ = nullptr;
  size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

/// That memory for the interpreter, which finds it by slot.
inline std::vector<BufferView> Views(const RandomKernel& kernel,
                                     const std::vector<GuardedMemory>& memory) {
  std::vector<BufferView> views;
  for (size_t i = 0; i < memory.size(); ++i) {
    views.push_back({kernel.buffers[i].slot, memory[i].data(), memory[i].bytes()});
  }
  return views;
}

/// The buffers of a random kernel, filled from a seed: twice the same for the same seed.
inline std::vector<GuardedMemory> FilledMemory(const RandomKernel& kernel, uint64_t seed,
                                               Flush flush) {
  Random random(seed);
  std::vector<GuardedMemory> memory;
  for (const TestBuffer& b : kernel.buffers) {
    memory.emplace_back(b.bytes(), flush);
    FillRandom(b, random, kernel.fill, memory.back().data());
  }
  return memory;
}

inline absl::Status InterpretOn(const UOp* sink, const RandomKernel& kernel,
                                const std::vector<GuardedMemory>& memory) {
  std::vector<BufferView> views;
  for (size_t i = 0; i < memory.size(); ++i) {
    views.push_back({kernel.buffers[i].slot, memory[i].data(), memory[i].bytes()});
  }
  return Interpret(sink, views);
}

/// "" if all buffers agree, those that are only read included.
inline std::string CompareMemory(const RandomKernel& kernel,
                                 const std::vector<GuardedMemory>& expected,
                                 const std::vector<GuardedMemory>& actual) {
  std::string differences;
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string one = CompareBuffers(kernel.buffers[i], expected[i].data(), actual[i].data());
    if (!one.empty()) Append(differences, one, "\n");
  }
  return differences;
}

}  // namespace quern

#endif  // QUERN_TESTS_FUZZ_GUARDED_MEMORY_H_
