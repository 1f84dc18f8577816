#include "codegen/emit_memory.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "codegen/emit_arithmetic.h"
#include "codegen/emit_tile.h"

namespace quern {
namespace {

using llvm::Align;
using llvm::IRBuilderBase;
using llvm::Value;

// bool is i1 as a value and a byte in memory.
Value* FromMemory(IRBuilderBase& b, DType dtype, Value* v) {
  if (!IsBool(dtype)) return v;
  return b.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
}

Value* ToMemory(IRBuilderBase& b, DType dtype, Value* v) {
  if (!IsBool(dtype)) return v;
  return b.CreateZExt(v, LlvmMemoryType(b.getContext(), dtype));
}

Value* Reverse(IRBuilderBase& b, Value* v) {
  const int lanes =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements());
  llvm::SmallVector<int, 64> mask;
  for (int i = lanes - 1; i >= 0; --i) mask.push_back(i);
  return b.CreateShuffleVector(v, mask);
}

Value* Gated(IRBuilderBase& b, const Access& access, const AccessValues& values, Value* pointer) {
  if (access.gate_kind != Access::Gate::kScalar) return pointer;
  return b.CreateSelect(values.gate, pointer, values.zeros);
}

// The pointers of all lanes.
Value* LanePointers(IRBuilderBase& b, const Access& access, DType dtype,
                    const AccessValues& values) {
  llvm::Type* element = LlvmMemoryType(b.getContext(), dtype.Scalar());
  Value* offsets = values.offsets;
  if (access.kind == Access::Kind::kStrided) {
    llvm::SmallVector<int64_t, 64> lanes;
    for (int i = 0; i < dtype.lanes; ++i) lanes.push_back(i * access.stride);
    llvm::SmallVector<llvm::Constant*, 64> constants;
    for (int64_t lane : lanes) constants.push_back(b.getInt64(static_cast<uint64_t>(lane)));
    offsets = llvm::ConstantVector::get(constants);
  }
  return b.CreateGEP(element, values.pointer, offsets);
}

Value* AllLanes(IRBuilderBase& b, const Access& access, DType dtype, const AccessValues& values) {
  if (access.gate_kind == Access::Gate::kLanes) return values.gate;
  if (access.gate_kind == Access::Gate::kScalar) {
    return b.CreateVectorSplat(dtype.lanes, values.gate);
  }
  return llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b.getInt1Ty(), dtype.lanes));
}

// Not what may be a truncated integer; and odd numbers of lanes take LLVM long to store one by one.
bool IsComputedFloat(const Value* value) {
  const llvm::Type* type = value->getType()->getScalarType();
  return (type->isFloatTy() || type->isDoubleTy()) && !llvm::isa<llvm::BitCastInst>(value);
}

// A store under a constant mask: plain stores of the lanes that are on. LLVM 22 turns a masked
// store of one lane whose value was truncated into a store of the wide element (docs/decisions.md).
void StoreSomeLanes(IRBuilderBase& b, DType dtype, const AccessValues& values, Value* value,
                    llvm::Constant& mask) {
  llvm::Type* element = LlvmMemoryType(b.getContext(), dtype.Scalar());
  const Align align(static_cast<uint64_t>(std::max(1, ByteSize(dtype.scalar))));
  for (unsigned first = 0; first < dtype.lanes;) {
    unsigned end = first;
    while (end < dtype.lanes && mask.getAggregateElement(end)->isOneValue()) ++end;
    if (end == first) {
      ++first;
      continue;
    }
    Value* part = nullptr;
    if (end - first == 1) {
      part = b.CreateExtractElement(value, uint64_t{first});
    } else {
      llvm::SmallVector<int, 64> lanes;
      for (unsigned i = first; i < end; ++i) lanes.push_back(static_cast<int>(i));
      part = b.CreateShuffleVector(value, lanes);
    }
    b.CreateAlignedStore(part, b.CreateConstGEP1_64(element, values.pointer, first), align);
    first = end;
  }
}

}  // namespace

Value* EmitLoad(IRBuilderBase& b, const Access& access, DType dtype, const AccessValues& values) {
  llvm::Type* type = LlvmMemoryType(b.getContext(), dtype);
  const Align element_align(static_cast<uint64_t>(std::max(1, ByteSize(dtype.scalar))));
  const Align align(static_cast<uint64_t>(values.alignment));
  switch (access.kind) {
    case Access::Kind::kScalar:
      return FromMemory(b, dtype,
                        b.CreateAlignedLoad(type, Gated(b, access, values, values.pointer), align));
    case Access::Kind::kSame: {
      llvm::Type* scalar = LlvmMemoryType(b.getContext(), dtype.Scalar());
      Value* pointer = Gated(b, access, values, values.pointer);
      if (access.gate_kind == Access::Gate::kLanes) {
        pointer = b.CreateSelect(b.CreateOrReduce(values.gate), pointer, values.zeros);
      }
      Value* v = b.CreateVectorSplat(dtype.lanes, b.CreateAlignedLoad(scalar, pointer, align));
      if (access.gate_kind == Access::Gate::kLanes) {
        v = b.CreateSelect(values.gate, v, llvm::Constant::getNullValue(type));
      }
      return FromMemory(b, dtype, v);
    }
    case Access::Kind::kStrided:
      if (access.stride == 1) {
        if (access.gate_kind == Access::Gate::kLanes) {
          return FromMemory(b, dtype,
                            b.CreateMaskedLoad(type, values.pointer, align, values.gate,
                                               llvm::Constant::getNullValue(type)));
        }
        return FromMemory(
            b, dtype, b.CreateAlignedLoad(type, Gated(b, access, values, values.pointer), align));
      }
      if (access.stride == -1 && access.gate_kind == Access::Gate::kNone) {
        Value* first =
            b.CreateConstGEP1_64(LlvmMemoryType(b.getContext(), dtype.Scalar()), values.pointer,
                                 static_cast<uint64_t>(1 - int64_t{dtype.lanes}));
        return FromMemory(b, dtype, Reverse(b, b.CreateAlignedLoad(type, first, element_align)));
      }
      [[fallthrough]];
    case Access::Kind::kTile:
      if (access.kind == Access::Kind::kTile) {
        QUERN_CHECK_MSG(access.gate == nullptr, "a tile under a gate");
        return EmitTileLoad(b, access, dtype, values.pointer);
      }
      [[fallthrough]];
    case Access::Kind::kGather:
      return FromMemory(b, dtype,
                        b.CreateMaskedGather(type, LanePointers(b, access, dtype, values),
                                             element_align, AllLanes(b, access, dtype, values),
                                             llvm::Constant::getNullValue(type)));
  }
  return nullptr;
}

void SeparateLoads(IRBuilderBase& b) {
  auto* type = llvm::FunctionType::get(b.getVoidTy(), /*isVarArg=*/false);
  b.CreateCall(type, llvm::InlineAsm::get(type, "", "~{memory}", /*hasSideEffects=*/true));
}

// For reading. Locality 3 is all levels of the cache, 2 leaves the first one out.
static void Fetch(IRBuilderBase& b, Value* place, uint32_t locality) {
  const uint32_t kRead = 0, kData = 1;
  b.CreateIntrinsic(llvm::Intrinsic::prefetch, {b.getPtrTy()},
                    {place, b.getInt32(kRead), b.getInt32(locality), b.getInt32(kData)});
}

void EmitPrefetch(IRBuilderBase& b, DType dtype, int64_t distance, const AccessValues& values) {
  constexpr int64_t kLine = 64;
  const int64_t bytes = ByteSize(dtype.scalar);
  for (int64_t at = 0; at < dtype.lanes * bytes; at += kLine) {
    Value* place = b.CreateConstGEP1_64(b.getInt8Ty(), values.pointer,
                                        static_cast<uint64_t>(distance * bytes + at));
    Fetch(b, place, /*locality=*/3);
  }
}

void EmitPrefetch(IRBuilderBase& b, DType dtype, Value* buffer, Value* offset) {
  Value* bytes = b.CreateMul(offset, b.getInt64(static_cast<uint64_t>(ByteSize(dtype.scalar))));
  Fetch(b, b.CreateGEP(b.getInt8Ty(), buffer, bytes), /*locality=*/2);
}

void EmitStore(IRBuilderBase& b, const Access& access, DType dtype, const AccessValues& values,
               Value* value) {
  value = ToMemory(b, dtype, value);
  const Align element_align(static_cast<uint64_t>(std::max(1, ByteSize(dtype.scalar))));
  const Align align(static_cast<uint64_t>(values.alignment));
  if (access.kind == Access::Kind::kScalar) {
    b.CreateAlignedStore(value, values.pointer, align);
    return;
  }
  QUERN_CHECK_MSG(access.kind != Access::Kind::kSame, "a store of all lanes to one place");
  if (access.kind == Access::Kind::kStrided && access.stride == 1) {
    if (access.gate_kind == Access::Gate::kLanes) {
      auto* mask = llvm::dyn_cast<llvm::Constant>(values.gate);
      if (mask != nullptr && !IsComputedFloat(value)) {
        StoreSomeLanes(b, dtype, values, value, *mask);
      } else {
        b.CreateMaskedStore(value, values.pointer, align, values.gate);
      }
    } else if (values.stream) {
      llvm::StoreInst* store = b.CreateAlignedStore(value, values.pointer, Align(64));
      store->setMetadata(
          llvm::LLVMContext::MD_nontemporal,
          llvm::MDNode::get(b.getContext(), llvm::ConstantAsMetadata::get(b.getInt32(1))));
    } else {
      b.CreateAlignedStore(value, values.pointer, align);
    }
    return;
  }
  if (access.kind == Access::Kind::kStrided && access.stride == -1 &&
      access.gate_kind == Access::Gate::kNone) {
    Value* first =
        b.CreateConstGEP1_64(LlvmMemoryType(b.getContext(), dtype.Scalar()), values.pointer,
                             static_cast<uint64_t>(1 - int64_t{dtype.lanes}));
    b.CreateAlignedStore(Reverse(b, value), first, element_align);
    return;
  }
  // A scalar gate is a branch around the store by now.
  Access ungated = access;
  if (ungated.gate_kind == Access::Gate::kScalar) ungated.gate_kind = Access::Gate::kNone;
  b.CreateMaskedScatter(value, LanePointers(b, access, dtype, values), element_align,
                        AllLanes(b, ungated, dtype, values));
}

}  // namespace quern
