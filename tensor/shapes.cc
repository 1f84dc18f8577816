#include "tensor/shapes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_join.h"
#include "rewrite/build.h"
#include "rewrite/concat.h"
#include "tensor/index_expression.h"

namespace quern::notation {
namespace {

constexpr int64_t kUnknown = -1;
// Keeps byte offsets of every element inside 63 bits.
constexpr int64_t kMaxElements = int64_t{1} << 59;

class ShapeResolver {
 public:
  ShapeResolver(const Formula& formula, const NotationOptions& options, FormulaMeaning& meaning)
      : formula_(formula), options_(options), meaning_(meaning), names_(meaning.names) {}

  absl::Status Run() {
    if (absl::Status s = TakeGiven(); !s.ok()) return s;
    InferSizes(/*backwards=*/false);
    InferSizes(/*backwards=*/true);
    if (absl::Status s = CheckSizes(); !s.ok()) return s;
    if (absl::Status s = InferShapes(); !s.ok()) return s;
    return CheckReads();
  }

 private:
  absl::Status Error(SourceSpan span, std::string_view message) const {
    return SourceError(formula_.text, span, message);
  }

  // Copies what the caller gave; a name that the formula does not have is a typing error of theirs.
  absl::Status TakeGiven() {
    for (const auto& [name, size] : options_.sizes) {
      const bool known = std::any_of(names_.variables.begin(), names_.variables.end(),
                                     [&](const Name& v) { return v.text == name; });
      if (!known) {
        return absl::InvalidArgumentError(
            Concat("size ", name, "=", size, ": the formula has no index variable ", name));
      }
      if (size < 0) {
        return absl::InvalidArgumentError(Concat("size ", name, "=", size, " is negative"));
      }
      meaning_.size[name] = size;
    }
    shape_.resize(names_.tensors.size());
    for (size_t t = 0; t < shape_.size(); ++t) shape_[t].assign(names_.rank[t], kUnknown);
    for (const auto& [name, shape] : options_.shapes) {
      const auto it = names_.tensor.find(name);
      if (it == names_.tensor.end()) {
        return absl::InvalidArgumentError(Concat("shape of ", name, ": no such tensor"));
      }
      const int t = it->second;
      if (static_cast<int>(shape.size()) != names_.rank[t]) {
        return absl::InvalidArgumentError(Concat("shape of ", name, " is (",
                                                 absl::StrJoin(shape, ","), "), ", shape.size(),
                                                 " axes; the formula uses ", names_.rank[t]));
      }
      shape_[t] = shape;
      const int definition = names_.definition[t];
      for (int d = 0; definition >= 0 && d < names_.rank[t]; ++d) {
        const std::string& v = formula_.statements[definition].variables[d].text;
        const int64_t size = meaning_.size.try_emplace(v, shape[d]).first->second;
        if (size != shape[d]) {
          return absl::InvalidArgumentError(
              Concat("shape of ", name, ": axis ", d, " is ", shape[d], ", but ", v, " is ", size));
        }
      }
    }
    return absl::OkStatus();
  }

  // The size of axis `d` of a tensor as far as it is known.
  int64_t AxisSize(int tensor, int d) const {
    const int definition = names_.definition[tensor];
    if (definition < 0) return shape_[tensor][d];
    const auto it = meaning_.size.find(formula_.statements[definition].variables[d].text);
    return it == meaning_.size.end() ? kUnknown : it->second;
  }

  // A variable that indexes an axis alone has the size of that axis; backwards, an axis that is
  // written has the size with which it is read.
  void InferSizes(bool backwards) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const ReadSite& site : names_.reads) {
        for (size_t d = 0; d < site.read->args.size(); ++d) {
          const Expr* index = site.read->args[d];
          if (index->kind != ExprKind::kVariable) continue;
          const int64_t axis = AxisSize(site.tensor, static_cast<int>(d));
          const auto size = meaning_.size.find(index->name);
          if (axis != kUnknown && size == meaning_.size.end()) {
            meaning_.size[index->name] = axis;
            changed = true;
          } else if (backwards && axis == kUnknown && size != meaning_.size.end() &&
                     names_.definition[site.tensor] >= 0) {
            const int definition = names_.definition[site.tensor];
            meaning_.size[formula_.statements[definition].variables[d].text] = size->second;
            changed = true;
          }
        }
      }
    }
  }

  absl::Status CheckSizes() const {
    std::vector<std::string> missing;
    SourceSpan where;
    for (const Name& v : names_.variables) {
      if (meaning_.size.contains(v.text)) continue;
      if (missing.empty()) where = v.span;
      missing.push_back(Concat(v.text, "=…"));
    }
    if (!missing.empty()) {
      return Error(where, Concat("the size of ", missing[0].substr(0, missing[0].find('=')),
                                 " is not known; give --size ", absl::StrJoin(missing, ",")));
    }
    // A size that was inferred from one tensor must fit the others; one that was given may be less.
    for (const ReadSite& site : names_.reads) {
      for (size_t d = 0; d < site.read->args.size(); ++d) {
        const Expr* index = site.read->args[d];
        if (index->kind != ExprKind::kVariable || options_.sizes.contains(index->name)) continue;
        const int64_t axis = AxisSize(site.tensor, static_cast<int>(d));
        const int64_t size = meaning_.size.at(index->name);
        if (axis == kUnknown || axis == size) continue;
        return Error(index->span, Concat(index->name, " is ", size, " elsewhere, but axis ", d,
                                         " of ", site.read->name, " has size ", axis,
                                         "; give --size ", index->name, "=… if a part is meant"));
      }
    }
    return absl::OkStatus();
  }

  // Whether an index of the read uses a variable of size 0: then it never happens.
  bool NeverHappens(const Expr* e) const {
    if (e->kind == ExprKind::kVariable) return meaning_.size.at(e->name) == 0;
    return std::any_of(e->args.begin(), e->args.end(),
                       [&](const Expr* a) { return NeverHappens(a); });
  }

  IndexInterval BoundsOf(const Expr* index) const {
    UOpGraph g;
    IndexScope scope;
    int axis = 0;
    for (const Name& v : names_.variables) {
      scope[v.text] = Range(g, meaning_.size.at(v.text), axis++, AxisType::kLoop);
    }
    return IndexBounds(LowerIndexExpression(g, index, scope));
  }

  // Inputs without a given shape: the smallest one that covers the reads.
  absl::Status InferShapes() {
    for (const ReadSite& site : names_.reads) {
      if (names_.definition[site.tensor] >= 0 ||
          options_.shapes.contains(names_.tensors[site.tensor].name)) {
        continue;
      }
      for (size_t d = 0; d < site.read->args.size(); ++d) {
        const Expr* index = site.read->args[d];
        int64_t& extent = shape_[site.tensor][d];
        if (index->kind == ExprKind::kVariable) {
          extent = std::max(extent, meaning_.size.at(index->name));
        } else if (NeverHappens(site.read)) {
          extent = std::max<int64_t>(extent, 0);
        } else if (!site.read->padded) {
          const int64_t high = BoundsOf(index).high;
          if (high < std::numeric_limits<int64_t>::max()) extent = std::max(extent, high + 1);
        }
      }
    }
    for (const ReadSite& site : names_.reads) {
      for (size_t d = 0; d < site.read->args.size(); ++d) {
        if (names_.definition[site.tensor] >= 0 || shape_[site.tensor][d] != kUnknown) continue;
        return Error(site.read->args[d]->span,
                     Concat("the size of axis ", d, " of ", site.read->name,
                            " is not known, because it is only read with padding; give "
                            "--shape ",
                            site.read->name, "=…"));
      }
    }
    for (size_t t = 0; t < names_.tensors.size(); ++t) {
      for (int d = 0; names_.definition[t] >= 0 && d < names_.rank[t]; ++d) {
        shape_[t][d] = AxisSize(static_cast<int>(t), d);
      }
      int64_t elements = 1;
      for (int64_t s : shape_[t]) {
        if (__builtin_mul_overflow(elements, s, &elements) || elements > kMaxElements) {
          return absl::InvalidArgumentError(Concat("tensor ", names_.tensors[t].name, " of shape (",
                                                   absl::StrJoin(shape_[t], ","),
                                                   ") has too many elements"));
        }
      }
      names_.tensors[t].shape = shape_[t];
    }
    return absl::OkStatus();
  }

  absl::Status CheckReads() const {
    for (const ReadSite& site : names_.reads) {
      if (site.read->padded || NeverHappens(site.read)) continue;
      for (size_t d = 0; d < site.read->args.size(); ++d) {
        const Expr* index = site.read->args[d];
        const IndexInterval range = BoundsOf(index);
        const int64_t extent = shape_[site.tensor][d];
        if (range.low >= 0 && range.high < extent) continue;
        const std::string read = formula_.text.substr(site.read->span.begin,
                                                      site.read->span.end - site.read->span.begin);
        return Error(index->span,
                     Concat("axis ", d, " of ", site.read->name, " has size ", extent,
                            ", but this index goes from ", range.low, " to ", range.high,
                            "; write pad(", read, ") to read zero outside"));
      }
    }
    return absl::OkStatus();
  }

  const Formula& formula_;
  const NotationOptions& options_;
  FormulaMeaning& meaning_;
  FormulaNames& names_;
  std::vector<std::vector<int64_t>> shape_;
};

absl::Status ResolveTypes(const Formula& formula, const NotationOptions& options,
                          FormulaMeaning& meaning) {
  FormulaNames& names = meaning.names;
  for (const auto& [name, dtype] : options.dtypes) {
    if (!names.tensor.contains(name)) {
      return absl::InvalidArgumentError(
          Concat("dtype ", name, "=", DTypeName(dtype), ": no such tensor"));
    }
  }
  const auto given = [&](const std::string& name, DType otherwise) {
    const auto it = options.dtypes.find(name);
    return it == options.dtypes.end() ? otherwise : it->second;
  };
  for (TensorInfo& t : names.tensors) t.dtype = given(t.name, kF32Type);
  for (size_t i = 0; i < formula.statements.size(); ++i) {
    TensorInfo& written = names.tensors[names.written[i]];
    absl::StatusOr<DType> value = InferTypes(
        formula, formula.statements[i].value,
        [&](const std::string& name) { return names.tensors[names.tensor.at(name)].dtype; },
        meaning.types);
    if (!value.ok()) return value.status();
    // A tensor that is updated in place keeps its type; another one takes that of its value.
    written.dtype =
        given(written.name, written.role == TensorRole::kInOut ? written.dtype : *value);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FormulaMeaning> ResolveFormula(const Formula& formula,
                                              const NotationOptions& options) {
  FormulaMeaning meaning;
  absl::StatusOr<FormulaNames> names = ResolveNames(formula, options.outputs);
  if (!names.ok()) return names.status();
  meaning.names = *std::move(names);
  if (absl::Status s = ShapeResolver(formula, options, meaning).Run(); !s.ok()) return s;
  if (absl::Status s = ResolveTypes(formula, options, meaning); !s.ok()) return s;
  return meaning;
}

}  // namespace quern::notation
