#include "driver/program_input.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "codegen/lower.h"
#include "rewrite/concat.h"
#include "rewrite/text.h"
#include "rewrite/verify.h"
#include "tensor/notation.h"

namespace quern {
namespace {

// "A=a.npy"
absl::StatusOr<std::pair<std::string, std::string>> SplitFile(const std::string& text,
                                                              std::string_view option) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(Concat(option, " ", text, ": must read NAME=file.npy"));
  }
  return std::make_pair(text.substr(0, equals), text.substr(equals + 1));
}

absl::StatusOr<Program> LoadUopFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(Concat("opening ", path, ": ", std::strerror(errno)));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  Program program;
  program.graph = std::make_shared<UOpGraph>();
  absl::StatusOr<const UOp*> sink = ParseText(*program.graph, text);
  if (!sink.ok()) {
    return absl::InvalidArgumentError(Concat(path, ":", sink.status().message()));
  }
  if (absl::Status s = VerifyKernel(*sink); !s.ok()) {
    return absl::InvalidArgumentError(Concat(path, ": not a kernel: ", s.message()));
  }
  KernelInfo kernel;
  kernel.sink = *sink;
  kernel.name = path;
  for (const KernelParam& p : CollectParams(*sink)) {
    TensorInfo t;
    t.name = Concat("p", p.slot);
    t.dtype = p.dtype;
    t.shape = {p.elements};
    t.slot = p.slot;
    t.role = !p.written ? TensorRole::kInput : p.read ? TensorRole::kInOut : TensorRole::kOutput;
    program.tensors.push_back(t);
    if (p.written) kernel.output = p.slot;
    if (p.read) kernel.inputs.push_back(p.slot);
  }
  std::sort(kernel.inputs.begin(), kernel.inputs.end());
  program.kernels.push_back(std::move(kernel));
  return program;
}

absl::Status ReadArrays(const ProgramOptions& options, ProgramInput& input,
                        NotationOptions& notation) {
  for (const std::string& text : options.inputs) {
    auto file = SplitFile(text, "-i");
    if (!file.ok()) return file.status();
    absl::StatusOr<NpyArray> array = ReadNpy(file->second);
    if (!array.ok()) return array.status();
    const auto given = notation.dtypes.find(file->first);
    if (given != notation.dtypes.end() && given->second != array->dtype) {
      return absl::InvalidArgumentError(Concat(file->second, " holds ", DTypeName(array->dtype),
                                               ", but --dtype says that ", file->first, " is ",
                                               DTypeName(given->second)));
    }
    notation.dtypes[file->first] = array->dtype;
    const auto shape = notation.shapes.try_emplace(file->first, array->shape);
    if (!shape.second && shape.first->second != array->shape) {
      return absl::InvalidArgumentError(
          Concat(file->second, " has another shape than --shape gives for ", file->first));
    }
    if (!input.arrays.try_emplace(file->first, *std::move(array)).second) {
      return absl::InvalidArgumentError(Concat("-i ", file->first, " is given twice"));
    }
  }
  return absl::OkStatus();
}

// Arrays must belong to tensors that are read, and have their type and size.
absl::Status CheckArrays(const ProgramInput& input) {
  for (const auto& [name, array] : input.arrays) {
    const TensorInfo* t = input.program.Find(name);
    if (t == nullptr || (t->role != TensorRole::kInput && t->role != TensorRole::kInOut)) {
      return absl::InvalidArgumentError(Concat("-i ", name, ": no such input"));
    }
    if (t->dtype != array.dtype || t->bytes() != static_cast<int64_t>(array.data.size())) {
      return absl::InvalidArgumentError(Concat(
          "-i ", name, ": the file holds ", array.data.size(), " bytes of ", DTypeName(array.dtype),
          ", ", t->bytes(), " of ", DTypeName(t->dtype), " are needed"));
    }
  }
  for (const auto& [name, file] : input.outputs) {
    const TensorInfo* t = input.program.Find(name);
    if (t == nullptr || t->role == TensorRole::kInput) {
      return absl::InvalidArgumentError(Concat("-o ", name, ": no such output"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void AddProgramOptions(CLI::App& command, ProgramOptions& options) {
  command
      .add_option("formula", options.formula,
                  "Index notation, such as 'C[i,j] = sum[k](A[i,k]*B[k,j])', or a .uop file")
      ->required();
  command.add_option("--size", options.sizes, "Sizes of index variables: i=1024,j=1024")
      ->type_name("SIZES")
      ->allow_extra_args(false);
  command.add_option("--dtype", options.dtypes, "Types of tensors: A=bf16,B=bf16 (else f32)")
      ->type_name("TYPES")
      ->allow_extra_args(false);
  command.add_option("--shape", options.shapes, "Shape of an input: X=1,3,226,226")
      ->type_name("SHAPE")
      ->allow_extra_args(false);
  command
      .add_option("--constant", options.constants,
                  "Inputs that are the same in each run, and may be packed ahead: W,B")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("-i,--input", options.inputs, "Read an input from a file: A=a.npy")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  command.add_option("-o,--output", options.outputs, "Write an output to a file: C=c.npy")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  command.add_flag("!--no-fuse", options.fuse, "Make every statement a kernel of its own");
  command.add_flag("!--no-groups", options.groups,
                   "Keep no intermediates in cache: chains stay several kernels");
}

absl::StatusOr<ProgramInput> LoadProgram(const ProgramOptions& options) {
  ProgramInput input;
  NotationOptions notation;
  notation.fuse = options.fuse;
  notation.groups = options.groups;
  notation.constants = options.constants;
  for (const std::string& s : options.sizes) {
    if (absl::Status status = ParseSizes(s, notation); !status.ok()) return status;
  }
  for (const std::string& s : options.dtypes) {
    if (absl::Status status = ParseDTypes(s, notation); !status.ok()) return status;
  }
  for (const std::string& s : options.shapes) {
    if (absl::Status status = ParseShape(s, notation); !status.ok()) return status;
  }
  if (absl::Status status = ReadArrays(options, input, notation); !status.ok()) return status;
  for (const std::string& text : options.outputs) {
    auto file = SplitFile(text, "-o");
    if (!file.ok()) return file.status();
    if (!input.outputs.try_emplace(file->first, file->second).second) {
      return absl::InvalidArgumentError(Concat("-o ", file->first, " is given twice"));
    }
  }
  input.source = options.formula;
  absl::StatusOr<Program> program = [&]() -> absl::StatusOr<Program> {
    if (options.formula.ends_with(".uop")) return LoadUopFile(options.formula);
    if (options.formula.ends_with(".onnx")) {
      return absl::UnimplementedError("ONNX models cannot be read yet");
    }
    for (const auto& [name, file] : input.outputs) notation.outputs.push_back(name);
    return ParseNotation(options.formula, notation);
  }();
  if (!program.ok()) return program.status();
  input.program = *std::move(program);
  if (absl::Status status = CheckArrays(input); !status.ok()) return status;
  return input;
}

}  // namespace quern
