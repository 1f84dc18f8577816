#include "runtime/kernel_image.h"

#include "absl/status/status.h"
#include "rewrite/concat.h"
#include "runtime/byte_stream.h"

namespace quern {
namespace {

constexpr std::string_view kMagic = "QKI3";

// More than any machine has, and small enough that sizes in bytes do not overflow.
constexpr int64_t kMaxElements = int64_t{1} << 56;
constexpr int64_t kMaxScratchBytes = int64_t{1} << 44;
constexpr int64_t kMaxThreads = int64_t{1} << 16;

}  // namespace

std::string SerializeImage(const KernelImage& image) {
  std::string out(kMagic);
  PutInt(out, static_cast<int64_t>(image.params.size()));
  for (const ImageParam& p : image.params) {
    PutInt(out, p.slot);
    PutText(out, DTypeName(p.dtype));
    PutInt(out, p.elements);
    PutInt(out, (p.written ? 1 : 0) | (p.read ? 2 : 0) | (p.temporary ? 4 : 0) | (p.kept ? 8 : 0));
  }
  PutInt(out, static_cast<int64_t>(image.phases.size()));
  for (const ImagePhase& p : image.phases) {
    PutText(out, p.symbol);
    PutInt(out, p.threads);
    PutInt(out, p.scratch_bytes);
    PutInt(out, (p.once ? 1 : 0) | (p.part_by_part ? 2 : 0));
  }
  PutText(out, image.object);
  return out;
}

absl::StatusOr<KernelImage> ParseImage(std::string_view bytes) {
  const absl::Status damaged = absl::DataLossError(
      Concat("kernel image: ", bytes.size(), " bytes that are no kernel image"));
  if (bytes.substr(0, kMagic.size()) != kMagic) return damaged;
  ByteReader reader{bytes.substr(kMagic.size())};
  KernelImage image;
  for (int64_t n = reader.Count(); n > 0 && reader.ok; --n) {
    ImageParam p;
    p.slot = reader.Int();
    const std::optional<DType> dtype = ParseDType(reader.Text());
    if (!dtype.has_value()) return damaged;
    p.dtype = *dtype;
    p.elements = reader.Int();
    const int64_t flags = reader.Int();
    p.written = (flags & 1) != 0;
    p.read = (flags & 2) != 0;
    p.temporary = (flags & 4) != 0;
    p.kept = (flags & 8) != 0;
    if (p.elements < 0 || p.elements > kMaxElements) return damaged;
    image.params.push_back(p);
  }
  for (int64_t n = reader.Count(); n > 0 && reader.ok; --n) {
    ImagePhase p;
    p.symbol = reader.Text();
    p.threads = reader.Int();
    p.scratch_bytes = reader.Int();
    const int64_t flags = reader.Int();
    p.once = (flags & 1) != 0;
    p.part_by_part = (flags & 2) != 0;
    if (p.threads < 1 || p.threads > kMaxThreads) return damaged;
    if (p.scratch_bytes < 0 || p.scratch_bytes > kMaxScratchBytes) return damaged;
    image.phases.push_back(std::move(p));
  }
  image.object = reader.Text();
  if (!reader.ok || !reader.bytes.empty()) return damaged;
  return image;
}

}  // namespace quern
