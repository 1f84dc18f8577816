#include "codegen/emit_phase.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "codegen/access.h"
#include "codegen/alias_scopes.h"
#include "codegen/emit_arithmetic.h"
#include "codegen/emit_function.h"
#include "codegen/emit_matrix.h"
#include "codegen/emit_memory.h"
#include "codegen/emit_prefix.h"
#include "codegen/emit_tile.h"
#include "codegen/guard_loops.h"
#include "codegen/stream_stores.h"
#include "codegen/written_memory.h"
#include "rewrite/bounds.h"
#include "rewrite/graph.h"

namespace quern {
namespace {

using llvm::BasicBlock;
using llvm::Value;

// Walks the statements of a phase. A pure value is made in the outermost loop where its ranges are
// open, once; a value read from memory that the phase writes is made where it is used.
class PhaseEmitter {
 public:
  PhaseEmitter(llvm::Module& module, const LoweredKernel& kernel, const KernelPhase& phase,
               const Target& target)
      : module_(module),
        context_(module.getContext()),
        kernel_(kernel),
        phase_(phase),
        target_(target),
        b_(context_) {}

  llvm::Function* Run(const std::string& name) {
    llvm::FastMathFlags flags;
    flags.setAllowContract(true);
    b_.setFastMathFlags(flags);
    FindBuffers();
    return MakeFunction(name);
  }

 private:
  // A loop that is open, outermost first; the first one is the function itself.
  struct Scope {
    const UOp* range = nullptr;
    llvm::Instruction* hoist_point = nullptr;  // the branch into the next open loop
    BasicBlock* skip = nullptr;                // where guards go whose condition is false
    size_t implied = 0;                        // guards that hold for what is made here
    absl::flat_hash_map<const UOp*, Value*> values;
    absl::flat_hash_map<std::pair<const UOp*, const UOp*>, Value*> pointers;
    absl::flat_hash_map<const UOp*, std::vector<Value*>> pieces;  // of transposed blocks
  };

  void FindBuffers() {
    order_ = Toposort(phase_.body);
    memory_.Begin(order_);
    for (const UOp* u : order_) {
      if (u->op == Op::kScratch) scratch_.push_back(u);
    }
    std::sort(scratch_.begin(), scratch_.end(),
              [](const UOp* a, const UOp* b) { return a->slot() < b->slot(); });
    scratch_bytes_ = LayOutScratch(scratch_, scratch_offsets_);
  }

  llvm::Function* MakeFunction(const std::string& name) {
    llvm::Type* pointer = b_.getPtrTy();
    llvm::Function* f = MakePhaseFunction(module_, name, target_.vector_bytes);
    b_.SetInsertPoint(BasicBlock::Create(context_, "entry", f));
    scopes_.emplace_back();
    for (const UOp* u : order_) {
      if (u->op == Op::kParam) {
        for (unsigned i = 0; i < kernel_.params.size(); ++i) {
          if (kernel_.params[i].slot != u->slot()) continue;
          llvm::LoadInst* load =
              b_.CreateLoad(pointer, b_.CreateConstGEP1_64(pointer, f->getArg(0), i));
          load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
          buffers_[u] = load;
        }
      } else if (u->op == Op::kRegister) {
        llvm::Type* type = llvm::ArrayType::get(LlvmMemoryType(context_, u->dtype),
                                                static_cast<uint64_t>(u->buffer_size()));
        llvm::AllocaInst* place = b_.CreateAlloca(type);
        place->setAlignment(llvm::Align(64));
        buffers_[u] = place;
      }
    }
    for (size_t i = 0; i < scratch_.size(); ++i) {
      buffers_[scratch_[i]] = b_.CreateConstInBoundsGEP1_64(
          b_.getInt8Ty(), f->getArg(1), static_cast<uint64_t>(scratch_offsets_[i]));
    }
    FindAxes();
    if (phase_.thread_range != nullptr) scopes_[0].values[phase_.thread_range] = f->getArg(2);
    EmitBody(f);
    std::vector<Value*> in_memory;  // In an order that does not depend on addresses.
    for (const UOp* u : order_) {
      if (IsBuffer(u->op) && u->op != Op::kRegister) in_memory.push_back(buffers_.at(u));
    }
    MarkAliases(*f, in_memory);
    return f;
  }

  // The statements; twice if some stores go past the caches where their buffers are aligned.
  void EmitBody(llvm::Function* f) {
    Value* misaligned = nullptr;
    absl::flat_hash_set<const UOp*> seen;
    for (const UOp* u : order_) {
      if (u->op != Op::kStore || (u->arg.a & kStreamFlag) == 0) continue;
      if (!seen.insert(u->src(0)->src(0)).second) continue;
      Value* address = b_.CreatePtrToInt(buffers_.at(u->src(0)->src(0)), b_.getInt64Ty());
      misaligned = misaligned == nullptr ? address : b_.CreateOr(misaligned, address);
    }
    if (misaligned == nullptr) {
      Statement(phase_.body);
      b_.CreateRetVoid();
      return;
    }
    Value* aligned = b_.CreateICmpEQ(b_.CreateAnd(misaligned, b_.getInt64(63)), b_.getInt64(0));
    BasicBlock* streams = BasicBlock::Create(context_, "streams", f);
    BasicBlock* stores = BasicBlock::Create(context_, "stores", f);
    b_.CreateCondBr(aligned, streams, stores);
    const Scope outermost = scopes_[0];
    for (BasicBlock* block : {streams, stores}) {
      b_.SetInsertPoint(block);
      scopes_[0] = outermost;
      fresh_.clear();
      fresh_pieces_.clear();
      streaming_ = block == streams;
      Statement(phase_.body);
      // What went past the caches is not ordered with the other stores before this.
      if (streaming_) b_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
      b_.CreateRetVoid();
    }
  }

  void Statement(const UOp* u) {
    switch (u->op) {
      case Op::kStore:
        StoreStatement(u);
        break;
      case Op::kLoop:
        LoopStatement(u);
        break;
      case Op::kGuard:
        GuardStatement(u);
        break;
      default:
        for (const UOp* s : u->src()) Statement(s);
    }
  }
  void LoopStatement(const UOp* loop) {
    const UOp* range = loop->src(0);
    if (range->range_size() == 0) return;
    llvm::Function* f = b_.GetInsertBlock()->getParent();
    BasicBlock* before = b_.GetInsertBlock();
    BasicBlock* body =
        BasicBlock::Create(context_, "loop" + std::to_string(range->range_axis()), f);
    scopes_.back().hoist_point = b_.CreateBr(body);
    b_.SetInsertPoint(body);
    llvm::PHINode* variable = b_.CreatePHI(b_.getInt64Ty(), 2);
    variable->addIncoming(b_.getInt64(0), before);
    Scope& scope = scopes_.emplace_back();
    scope.range = range;
    scope.values[range] = variable;
    scope.implied = implied_.size();
    for (const UOp* s : loop->src().subspan(1)) Statement(s);
    if (BasicBlock* skip = scopes_.back().skip) {
      b_.CreateBr(skip);
      b_.SetInsertPoint(skip);
    }
    scopes_.pop_back();
    implied_.resize(scopes_.back().implied);
    scopes_.back().hoist_point = nullptr;
    Value* next = b_.CreateAdd(variable, b_.getInt64(1), "", /*HasNUW=*/true, /*HasNSW=*/true);
    BasicBlock* end = BasicBlock::Create(context_, "end", f);
    Value* again = b_.CreateICmpULT(next, b_.getInt64(static_cast<uint64_t>(range->range_size())));
    llvm::BranchInst* branch = b_.CreateCondBr(again, body, end);
    KeepAsScheduled(*branch);
    variable->addIncoming(next, b_.GetInsertBlock());
    b_.SetInsertPoint(end);
  }

  // The rest of the loop's iteration stands where the condition holds.
  void GuardStatement(const UOp* guard) {
    Value* holds = Get(guard->src(0));
    llvm::Function* f = b_.GetInsertBlock()->getParent();
    BasicBlock*& skip = scopes_.back().skip;
    if (skip == nullptr) skip = BasicBlock::Create(context_, "skip", f);
    BasicBlock* then = BasicBlock::Create(context_, "guarded", f);
    b_.CreateCondBr(holds, then, skip);
    b_.SetInsertPoint(then);
    implied_.push_back(guard->src(0));
    scopes_.back().implied = implied_.size();
  }

  // The conditions of a mask that no guard asks around the place where `u` is made.
  std::vector<const UOp*> GatesLeft(const Access& access, const UOp* u) const {
    if (access.gate == nullptr) return {};
    const bool pure = u->op == Op::kLoad && memory_.IsPure(u);
    const auto known =
        static_cast<int64_t>(scopes_[pure ? DepthOf(u) : scopes_.size() - 1].implied);
    return ConjunctsLeft(access.gate, {implied_.begin(), implied_.begin() + known});
  }

  // All of them; where none is left the access has no gate any more.
  Value* GateValue(Access& access, const UOp* u) {
    Value* all = nullptr;
    for (const UOp* c : GatesLeft(access, u)) all = all ? b_.CreateAnd(all, Get(c)) : Get(c);
    if (all == nullptr) access.gate_kind = Access::Gate::kNone;
    return all;
  }

  void StoreStatement(const UOp* store) {
    const UOp* index = store->src(0);
    Access access = ReadAccess(index);
    Value* gate = GateValue(access, store);
    auto* known = llvm::dyn_cast_or_null<llvm::Constant>(gate);
    if (known != nullptr && known->isNullValue()) return;
    Value* value = Get(store->src(1));
    AccessValues values = Locate(access, index->dtype);
    values.gate = gate;
    values.stream = streaming_ && (store->arg.a & kStreamFlag) != 0;
    BasicBlock* after = nullptr;
    if (access.gate_kind == Access::Gate::kScalar &&
        (known == nullptr || !known->isAllOnesValue())) {
      llvm::Function* f = b_.GetInsertBlock()->getParent();
      BasicBlock* then = BasicBlock::Create(context_, "gate", f);
      after = BasicBlock::Create(context_, "after", f);
      b_.CreateCondBr(gate, then, after);
      b_.SetInsertPoint(then);
    }
    EmitStore(b_, access, index->dtype, values, value);
    if (after != nullptr) {
      b_.CreateBr(after);
      b_.SetInsertPoint(after);
    }
    memory_.Written(access.buffer);
  }

  // The scope in which `u` can be made: that of the innermost open loop that it depends on.
  size_t DepthOf(const UOp* u) const {
    const uint64_t set = axes_[u->id];
    if (set == 0) return 0;
    for (size_t d = scopes_.size(); d-- > 1;) {
      if ((set & AxisBit(scopes_[d].range)) != 0) return d;
    }
    return 0;
  }

  // Pieces of a split loop share their axis number, and never are open together.
  static uint64_t AxisBit(const UOp* range) { return uint64_t{1} << range->range_axis(); }

  void FindAxes() {
    axes_.assign(phase_.body->id + 1, 0);
    for (const UOp* u : order_) {
      uint64_t set = 0;
      if (u->op == Op::kRange) {
        QUERN_CHECK_MSG(u->range_axis() < 64, "at most 64 loops");
        if (u != phase_.thread_range) set = AxisBit(u);
      }
      for (const UOp* s : u->src()) set |= axes_[s->id];
      axes_[u->id] = set;
    }
  }

  // The value of a node, made on demand in dependency order.
  Value* Get(const UOp* root) {
    std::vector<const UOp*>& stack = stack_;
    const size_t bottom = stack.size();
    stack.push_back(root);
    while (stack.size() > bottom) {
      const UOp* u = stack.back();
      if (Find(u) != nullptr) {
        stack.pop_back();
        continue;
      }
      bool ready = true;
      auto need = [&](const UOp* s) {
        if (s == nullptr || Find(s) != nullptr) return;
        stack.push_back(s);
        ready = false;
      };
      if (u->op == Op::kLoad) {
        const Access access = ReadAccess(u->src(0));
        for (const UOp* c : GatesLeft(access, u)) need(c);
        if (u->source_count == 2) need(u->src(1));
        if (access.kind == Access::Kind::kGather) {
          need(access.offset);
        } else {
          need(SplitBase(access.base).first);
        }
      } else if (IsColumn(u)) {
        for (const UOp* s : u->src(0)->src()) need(s);
      } else {
        for (const UOp* s : u->src()) need(s);
      }
      if (!ready) continue;
      stack.pop_back();
      Make(u);
    }
    return Find(root);
  }

  Value* Find(const UOp* u) {
    if (memory_.IsPure(u)) {
      Scope& scope = scopes_[DepthOf(u)];
      auto found = scope.values.find(u);
      return found == scope.values.end() ? nullptr : found->second;
    }
    auto found = fresh_.find(u);
    if (found == fresh_.end() || found->second.second != Version(u)) return nullptr;
    return found->second.first;
  }

  // Changes whenever a value that reads written memory must be made again: when one of its buffers
  // was written, or in another block, which the value need not dominate.
  uint64_t Version(const UOp* u) { return memory_.Version(u) * 1000003u + BlockNumber(); }

  uint64_t BlockNumber() {
    auto [at, is_new] = block_numbers_.try_emplace(b_.GetInsertBlock(), block_numbers_.size());
    return at->second;
  }

  void Make(const UOp* u) {
    if (!memory_.IsPure(u)) {
      Value* value = Compute(u);
      fresh_[u] = {value, Version(u)};
      return;
    }
    const size_t depth = DepthOf(u);
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    if (depth + 1 < scopes_.size()) b_.SetInsertPoint(scopes_[depth].hoist_point);
    Value* value = Compute(u);
    scopes_[depth].values[u] = value;
  }

  Value* Compute(const UOp* u) {
    switch (u->op) {
      case Op::kConst:
        return EmitConst(b_, u);
      case Op::kLanes:
        return EmitLanes(b_, u->dtype.lanes);
      case Op::kBroadcast:
        return b_.CreateVectorSplat(u->dtype.lanes, Get(u->src(0)));
      case Op::kHorizontal:
        return EmitHorizontal(b_, u->reduce_op(), u->src(0)->dtype, Get(u->src(0)));
      case Op::kPrefix:
        return EmitPrefix(b_, u, Get(u->src(0)), target_.vector_bytes);
      case Op::kExtract:
        if (IsColumn(u)) {
          const unsigned group = GroupOf(u->src(0));
          Value* column = EmitSlice(b_, Pieces(u->src(0)), static_cast<unsigned>(u->arg.a) / group,
                                    u->dtype.lanes / group);
          return b_.CreateBitCast(column, LlvmType(context_, u->dtype));
        }
        return b_.CreateExtractElement(Get(u->src(0)), static_cast<uint64_t>(u->arg.a));
      case Op::kInterleave: {
        std::vector<Value*> parts;
        for (const UOp* s : u->src()) parts.push_back(Get(s));
        QUERN_CHECK_MSG(u->arg.a == 0, "blocks of groups are never one value");
        return EmitInterleave(b_, parts);
      }
      case Op::kTile:
        return EmitTile(b_, u, Get(u->src(0)), Get(u->src(1)), Get(u->src(2)));
      case Op::kMatrix:
        return EmitMatrix(b_, u, Get(u->src(0)), Get(u->src(1)), Get(u->src(2)));
      case Op::kLoad: {
        Access access = ReadAccess(u->src(0));
        if (u->arg.b != 0 && std::exchange(separate_, u->arg.b) != u->arg.b) SeparateLoads(b_);
        AccessValues values = Locate(access, u->dtype);
        values.gate = GateValue(access, u);
        if (u->arg.a != 0) EmitPrefetch(b_, u->dtype, u->arg.a, values);
        if (u->source_count == 2) {
          EmitPrefetch(b_, u->dtype, buffers_.at(access.buffer), Get(u->src(1)));
        }
        return EmitLoad(b_, access, u->dtype, values);
      }
      default:
        return Elementwise(u);
    }
  }

  const std::vector<Value*>& Pieces(const UOp* block) {
    auto make = [&] {
      std::vector<Value*> rows;
      for (const UOp* s : block->src()) rows.push_back(Get(s));
      const unsigned group = GroupOf(block);
      if (group > 1) {  // A group moves as one wider integer.
        const DType row = block->src(0)->dtype;
        llvm::Type* element = b_.getIntNTy(group * 8 * static_cast<unsigned>(ByteSize(row.scalar)));
        llvm::Type* type = llvm::FixedVectorType::get(element, row.lanes / group);
        for (Value*& r : rows) r = b_.CreateBitCast(r, type);
      }
      return EmitTransposed(b_, rows);
    };
    if (memory_.IsPure(block)) {
      // Called where the column is made: in the scope that the block belongs to.
      std::vector<Value*>& pieces = scopes_[DepthOf(block)].pieces[block];
      if (pieces.empty()) pieces = make();
      return pieces;
    }
    auto& [version, pieces] = fresh_pieces_[block];
    if (pieces.empty() || version != Version(block)) {
      pieces = make();
      version = Version(block);
    }
    return pieces;
  }

  Value* Elementwise(const UOp* u) {
    std::vector<Value*> sources;
    for (const UOp* s : u->src()) sources.push_back(Get(s));
    return EmitBounded(b_, u, std::move(sources), bounds_);
  }

  AccessValues Locate(const Access& access, DType dtype) {
    AccessValues values;
    values.zeros = ZeroBytes(module_);
    Value* buffer = buffers_.at(access.buffer);
    llvm::Type* element = LlvmMemoryType(context_, dtype.Scalar());
    values.alignment = ByteSize(dtype.scalar);
    if (access.kind == Access::Kind::kGather) {
      values.pointer = buffer;
      values.offsets = Get(access.offset);
      return values;
    }
    const auto [base, constant] = SplitBase(access.base);
    Value* pointer = buffer;
    if (base != nullptr) {
      Value* offset = Get(base);
      const bool pure = memory_.IsPure(base);
      Scope& scope = scopes_[pure ? DepthOf(base) : scopes_.size() - 1];
      Value** cached = pure ? &scope.pointers[{access.buffer, base}] : nullptr;
      if (cached != nullptr && *cached != nullptr) {
        pointer = *cached;
      } else {
        llvm::IRBuilderBase::InsertPointGuard guard(b_);
        if (pure && &scope != &scopes_.back()) b_.SetInsertPoint(scope.hoist_point);
        offset = b_.CreateSExtOrTrunc(offset, b_.getInt64Ty());
        pointer = b_.CreateInBoundsGEP(element, buffer, offset);
        if (cached != nullptr) *cached = pointer;
      }
    } else if (access.buffer->op != Op::kParam) {
      // Private buffers are aligned, and so are vectors at a constant place.
      const int64_t bytes = constant * ByteSize(dtype.scalar);
      while (values.alignment < 64 && bytes % (values.alignment * 2) == 0) values.alignment *= 2;
    }
    if (constant != 0) {
      pointer = b_.CreateConstGEP1_64(element, pointer, static_cast<uint64_t>(constant));
    }
    values.pointer = pointer;
    return values;
  }

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const LoweredKernel& kernel_;
  const KernelPhase& phase_;
  const Target& target_;
  llvm::IRBuilder<> b_;
  BoundsAnalysis bounds_;
  std::vector<uint64_t> axes_;  // by node id: the loops that a node depends on, by axis number
  std::vector<const UOp*> order_;
  std::vector<const UOp*> scratch_;
  std::vector<int64_t> scratch_offsets_;
  int64_t scratch_bytes_ = 0;
  bool streaming_ = false;
  int64_t separate_ = 0;  // arg.b of the last load that has one
  WrittenMemory memory_;
  absl::flat_hash_map<const UOp*, Value*> buffers_;
  std::vector<Scope> scopes_;
  std::vector<const UOp*> implied_;  // by guards
  std::vector<const UOp*> stack_;
  absl::flat_hash_map<const UOp*, std::pair<Value*, uint64_t>> fresh_;
  absl::flat_hash_map<const UOp*, std::pair<uint64_t, std::vector<Value*>>> fresh_pieces_;
  absl::flat_hash_map<BasicBlock*, uint64_t> block_numbers_;
};

}  // namespace

llvm::Function* EmitPhase(llvm::Module& module, const LoweredKernel& kernel,
                          const KernelPhase& phase, const Target& target, const std::string& name) {
  return PhaseEmitter(module, kernel, phase, target).Run(name);
}

}  // namespace quern
