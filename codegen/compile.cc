#include "codegen/compile.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <chrono>
#include <memory>
#include <mutex>

#include "absl/strings/str_join.h"
#include "codegen/emit_phase.h"
#include "codegen/emit_tile.h"
#include "codegen/invariant_division.h"
#include "codegen/masked_loads.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void InitializeLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
}

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeTargetMachine(const Target& target) {
  InitializeLlvm();
  std::string error;
  const llvm::Triple triple(target.llvm_triple);
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (found == nullptr) {
    return absl::NotFoundError(
        Concat("compile: LLVM has no target \"", target.llvm_triple, "\": ", error));
  }
  std::string features = absl::StrJoin(
      target.features, ",", [](std::string* out, const std::string& f) { Append(*out, "+", f); });
  // EXTRQ of SSE4A has no AVX form: beside AVX code it takes 109 ns instead of one (Zen 3).
  if (triple.isX86()) Append(features, ",-sse4a");
  llvm::TargetOptions options;
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(triple, target.llvm_cpu, features, options, llvm::Reloc::PIC_,
                                 std::nullopt, llvm::CodeGenOptLevel::Default, /*JIT=*/true));
  if (machine == nullptr) {
    return absl::InternalError(
        Concat("compile: no code generator for cpu \"", target.llvm_cpu, "\""));
  }
  return machine;
}

struct InvariantDivisionPass : llvm::PassInfoMixin<InvariantDivisionPass> {
  InvariantDivisionPass(const llvm::TargetMachine& target_machine, int bytes)
      : machine(target_machine), vector_bytes(bytes) {}

  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager& analyses) {
    return DivideByReciprocals(f, analyses, machine, vector_bytes) ? llvm::PreservedAnalyses::none()
                                                                   : llvm::PreservedAnalyses::all();
  }

  const llvm::TargetMachine& machine;
  int vector_bytes;
};

// Few passes: the kernel is vectorised, unrolled and hoisted already. What is left is to turn
// accumulators into registers and to clean up after folding.
void RunPasses(llvm::Module& module, llvm::TargetMachine& machine, const Target& target) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/false));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                       /*UseMemorySSA=*/true));
  passes.addPass(InvariantDivisionPass(machine, target.vector_bytes));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::ADCEPass());
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    passes.run(f, functions);
    SinkTileReads(f);
    if (!target.Has("avx512f")) CutMaskedLoads(f, target.vector_bytes);
  }
}

// About how many instructions code generation will have to do with: it takes gathers and scatters
// apart, lane by lane.
int64_t CountInstructions(const llvm::Module& module) {
  constexpr int64_t kPerLane = 4;
  int64_t count = module.getInstructionCount();
  for (const llvm::Function& f : module) {
    for (const llvm::Instruction& i : llvm::instructions(f)) {
      const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
      if (call == nullptr) continue;
      const bool gathers = call->getIntrinsicID() == llvm::Intrinsic::masked_gather;
      if (!gathers && call->getIntrinsicID() != llvm::Intrinsic::masked_scatter) continue;
      const llvm::Type* type = gathers ? call->getType() : call->getArgOperand(0)->getType();
      count += kPerLane * llvm::cast<llvm::FixedVectorType>(type)->getNumElements();
    }
  }
  return count;
}

absl::StatusOr<std::string> EmitFile(llvm::Module& module, llvm::TargetMachine& machine,
                                     llvm::CodeGenFileType type) {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  llvm::TargetPassConfig* steps = machine.createPassConfig(passes);
  // That pass makes trees of chains of integer sums. Their accumulators are many enough to hide how
  // long one waits for the other, and have no register left for a tree.
  steps->disablePass(&llvm::MachineCombinerID);
  auto* functions = new llvm::MachineModuleInfoWrapperPass(&machine);
  passes.add(steps);
  passes.add(functions);
  if (steps->addISelPasses()) {
    return absl::InternalError("compile: this LLVM target selects no instructions");
  }
  steps->addMachinePasses();
  steps->setInitialized();
  if (machine.addAsmPrinter(passes, stream, nullptr, type, functions->getMMI().getContext())) {
    return absl::InternalError("compile: this LLVM target emits no files of the kind asked for");
  }
  passes.add(llvm::createFreeMachineFunctionPass());
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

}  // namespace

std::string LlvmVersion() { return LLVM_VERSION_STRING; }

absl::StatusOr<CompiledKernel> CompileForCpu(const LoweredKernel& kernel, const Target& target,
                                             const CompileOptions& options) {
  CompiledKernel result;
  const Clock::time_point start = Clock::now();
  absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> machine = MakeTargetMachine(target);
  if (!machine.ok()) return machine.status();
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  for (size_t i = 0; i < kernel.phases.size(); ++i) {
    result.symbols.push_back(Concat("quern_phase_", i));
    EmitPhase(module, kernel, kernel.phases[i], target, result.symbols.back());
  }
  result.times.emit_ms = MillisecondsSince(start);
  if (options.verify) {
    std::string error;
    llvm::raw_string_ostream stream(error);
    if (llvm::verifyModule(module, &stream)) {
      std::string text;
      llvm::raw_string_ostream(text) << module;
      return absl::InternalError(Concat("compile: broken LLVM IR: ", error, "\n", text));
    }
  }
  const Clock::time_point passes_start = Clock::now();
  RunPasses(module, **machine, target);
  result.times.passes_ms = MillisecondsSince(passes_start);
  if (const int64_t count = CountInstructions(module);
      options.max_instructions > 0 && count > options.max_instructions) {
    return absl::ResourceExhaustedError(Concat("compile: code of about ", count,
                                               " instructions is above the limit ",
                                               options.max_instructions));
  }
  if (options.keep_llvm_ir) {
    llvm::raw_string_ostream stream(result.llvm_ir);
    stream << module;
  }
  if (options.keep_assembly) {
    // Machine code generation consumes the module, so the text comes from a run of its own.
    absl::StatusOr<CompiledKernel> text = CompileForCpu(kernel, target, {});
    if (!text.ok()) return text.status();
    absl::StatusOr<std::string> assembly =
        EmitFile(module, **machine, llvm::CodeGenFileType::AssemblyFile);
    if (!assembly.ok()) return assembly.status();
    result.assembly = *std::move(assembly);
    result.object = std::move(text->object);
    result.times.machine_code_ms = text->times.machine_code_ms;
    return result;
  }
  const Clock::time_point code_start = Clock::now();
  absl::StatusOr<std::string> object =
      EmitFile(module, **machine, llvm::CodeGenFileType::ObjectFile);
  if (!object.ok()) return object.status();
  result.object = *std::move(object);
  result.times.machine_code_ms = MillisecondsSince(code_start);
  return result;
}

}  // namespace quern
