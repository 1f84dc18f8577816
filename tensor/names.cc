#include "tensor/names.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "rewrite/concat.h"
#include "tensor/index_expression.h"

namespace quern::notation {
namespace {

class NameResolver {
 public:
  NameResolver(const Formula& formula, FormulaNames& names) : formula_(formula), names_(names) {}

  absl::Status Run() {
    for (size_t i = 0; i < formula_.statements.size(); ++i) {
      const Statement& s = formula_.statements[i];
      if (!statement_of_.try_emplace(s.name.text, static_cast<int>(i)).second) {
        return Error(s.name.span, Concat(s.name.text, " is defined twice"));
      }
      for (const Name& v : s.variables) AddVariable(v);
    }
    // Inputs come first, in order of appearance; a read of a later statement is an error below.
    for (const std::unique_ptr<Expr>& e : formula_.nodes) {
      if (e->kind == ExprKind::kRead && !statement_of_.contains(e->name) &&
          !names_.tensor.contains(e->name)) {
        AddTensor(e->name, TensorRole::kInput, static_cast<int>(e->args.size()), -1);
      }
    }
    for (size_t i = 0; i < formula_.statements.size(); ++i) {
      const Statement& s = formula_.statements[i];
      const TensorRole role =
          Reads(s.value, s.name.text) ? TensorRole::kInOut : TensorRole::kOutput;
      names_.written.push_back(
          AddTensor(s.name.text, role, static_cast<int>(s.variables.size()), static_cast<int>(i)));
    }
    for (statement_ = 0; statement_ < static_cast<int>(formula_.statements.size()); ++statement_) {
      scope_.clear();
      for (const Name& v : Current().variables) ++scope_[v.text];
      reduced_.clear();
      if (absl::Status s = Visit(Current().value); !s.ok()) return s;
    }
    return CheckDisjoint();
  }

 private:
  const Statement& Current() const { return formula_.statements[statement_]; }
  absl::Status Error(SourceSpan span, std::string_view message) const {
    return SourceError(formula_.text, span, message);
  }

  void AddVariable(const Name& name) {
    if (seen_variables_.insert(name.text).second) names_.variables.push_back(name);
  }

  int AddTensor(const std::string& name, TensorRole role, int rank, int definition) {
    const int place = static_cast<int>(names_.tensors.size());
    TensorInfo info;
    info.name = name;
    info.slot = place;
    info.role = role;
    names_.tensors.push_back(std::move(info));
    names_.rank.push_back(rank);
    names_.definition.push_back(definition);
    names_.tensor[name] = place;
    return place;
  }

  static bool Reads(const Expr* e, const std::string& tensor) {
    if (e->kind == ExprKind::kRead && e->name == tensor) return true;
    return std::any_of(e->args.begin(), e->args.end(),
                       [&](const Expr* a) { return Reads(a, tensor); });
  }

  absl::Status Visit(const Expr* e) {
    switch (e->kind) {
      case ExprKind::kVariable:
        return VisitVariable(e);
      case ExprKind::kRead:
        return VisitRead(e);
      case ExprKind::kReduce: {
        for (const Name& v : e->variables) {
          AddVariable(v);
          ++scope_[v.text];
          ++reduced_[v.text];
        }
        absl::Status s = Visit(e->args[0]);
        for (const Name& v : e->variables) {
          --scope_[v.text];
          --reduced_[v.text];
        }
        return s;
      }
      default:
        for (const Expr* a : e->args) {
          if (absl::Status s = Visit(a); !s.ok()) return s;
        }
        return absl::OkStatus();
    }
  }

  absl::Status VisitVariable(const Expr* e) {
    if (scope_[e->name] > 0) return absl::OkStatus();
    if (names_.tensor.contains(e->name)) {
      return Error(e->span, Concat(e->name, " is a tensor; write its indices, ", e->name,
                                   names_.rank[names_.tensor[e->name]] == 0 ? "[]" : "[…]"));
    }
    return Error(e->span, Concat(e->name, " is neither an index of ", Current().name.text,
                                 " nor reduced over here"));
  }

  absl::Status VisitRead(const Expr* e) {
    for (const Expr* a : e->args) {
      if (absl::Status s = CheckIndexExpression(formula_, a); !s.ok()) return s;
      if (absl::Status s = Visit(a); !s.ok()) return s;
    }
    const int tensor = names_.tensor.at(e->name);
    if (static_cast<int>(e->args.size()) != names_.rank[tensor]) {
      return Error(e->span,
                   Concat(e->name, " has ", names_.rank[tensor],
                          names_.rank[tensor] == 1 ? " axis" : " axes", ", not ", e->args.size()));
    }
    const int definition = names_.definition[tensor];
    if (definition == statement_) {
      if (absl::Status s = CheckInPlace(e); !s.ok()) return s;
    } else if (definition > statement_ && names_.tensors[tensor].role != TensorRole::kInOut) {
      return Error(e->span, Concat(e->name, " is defined only further on"));
    } else if (names_.tensors[tensor].role == TensorRole::kOutput) {
      names_.tensors[tensor].role = TensorRole::kIntermediate;
    }
    names_.reads.push_back({e, statement_, tensor});
    return absl::OkStatus();
  }

  // Each element may be read only by the store that overwrites it.
  absl::Status CheckInPlace(const Expr* e) const {
    bool same = !e->padded;
    for (size_t i = 0; i < e->args.size(); ++i) {
      const Expr* a = e->args[i];
      const auto reduced = reduced_.find(a->name);
      same = same && a->kind == ExprKind::kVariable && a->name == Current().variables[i].text &&
             (reduced == reduced_.end() || reduced->second == 0);
    }
    if (same) return absl::OkStatus();
    return Error(e->span, Concat(e->name,
                                 " is written by this statement, so it can be read "
                                 "only with the indices of the left side"));
  }

  absl::Status CheckDisjoint() const {
    for (const Name& v : names_.variables) {
      if (!names_.tensor.contains(v.text)) continue;
      return Error(v.span, Concat(v.text, " is an index variable and a tensor"));
    }
    return absl::OkStatus();
  }

  const Formula& formula_;
  FormulaNames& names_;
  int statement_ = 0;
  absl::flat_hash_map<std::string, int> statement_of_;
  absl::flat_hash_set<std::string> seen_variables_;
  absl::flat_hash_map<std::string, int> scope_;    // name → how often it is bound here
  absl::flat_hash_map<std::string, int> reduced_;  // of these, by reductions
};

}  // namespace

absl::StatusOr<FormulaNames> ResolveNames(const Formula& formula,
                                          const std::vector<std::string>& outputs) {
  FormulaNames names;
  if (absl::Status s = NameResolver(formula, names).Run(); !s.ok()) return s;
  for (const std::string& output : outputs) {
    const auto it = names.tensor.find(output);
    if (it == names.tensor.end() || names.definition[it->second] < 0) {
      return absl::InvalidArgumentError(
          Concat("output ", output, ": no statement of the formula defines it"));
    }
    TensorRole& role = names.tensors[it->second].role;
    if (role == TensorRole::kIntermediate) role = TensorRole::kOutput;
  }
  return names;
}

}  // namespace quern::notation
