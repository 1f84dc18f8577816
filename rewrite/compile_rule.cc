#include <algorithm>
#include <string>

#include "rewrite/match.h"
#include "rewrite/rule_order.h"

// Turns a row of a table into what the matcher wants: every order of operands, the ops that must be
// among the sources, and the classes of nodes that can match.

namespace quern {
namespace {

bool IsCommutative(Op op, Domain domain) {
  // Of two zeros, max and min of floats take the second one.
  if (op == Op::kMax || op == Op::kMin) {
    return domain != Domain::kFloat && domain != Domain::kFloatReassoc && domain != Domain::kAny;
  }
  return GetOpInfo(op).commutative;
}

bool IsConstantKind(TokenKind k) {
  return k != TokenKind::kOp && k != TokenKind::kCapture && k != TokenKind::kPredicate;
}

Expr Slice(const Expr& e, size_t begin, size_t end) {
  Expr part;
  for (size_t i = begin; i < end; ++i) part.tokens[part.size++] = e.tokens[i];
  return part;
}

Expr SwapOperands(const Expr& e, size_t position) {
  const size_t left = position + 1;
  const size_t right = EndOfExpr(e, left);
  const size_t end = EndOfExpr(e, right);
  Expr swapped = Slice(e, 0, left);
  swapped.Append(Slice(e, right, end));
  swapped.Append(Slice(e, left, right));
  swapped.Append(Slice(e, end, e.size));
  return swapped;
}

void AppendTokens(std::string& text, const Expr& e, std::array<int, 12>& names, int& next) {
  for (size_t i = 0; i < e.size; ++i) {
    Token t = e.tokens[i];
    // Captures by order of first appearance; asking for a bound names the same capture.
    int kind = static_cast<int>(t.kind);
    int slot = -1;
    if (t.kind == TokenKind::kCapture || t.kind == TokenKind::kLowerBound ||
        t.kind == TokenKind::kUpperBound) {
      slot = t.value;
    } else if (t.kind == TokenKind::kPredicate) {
      slot = 4 + t.value;
    } else if (t.kind == TokenKind::kConstant || t.kind == TokenKind::kExactInverse) {
      slot = 8 + t.value;
    }
    int value = t.value;
    if (slot >= 0) {
      if (names[static_cast<size_t>(slot)] < 0) names[static_cast<size_t>(slot)] = next++;
      value = names[static_cast<size_t>(slot)];
    }
    text += std::to_string(kind) + ":" + std::to_string(value) + " ";
  }
}

// Two variants that differ only in the names of their captures are one rule.
std::string Spelling(const Expr& before, const Rule& rule) {
  std::array<int, 12> names;
  names.fill(-1);
  int next = 0;
  std::string text;
  AppendTokens(text, before, names, next);
  text += "-> ";
  AppendTokens(text, rule.after, names, next);
  text += "if ";
  AppendTokens(text, rule.when, names, next);
  return text;
}

// Constants are on the right when sources are in normal form, so such a variant cannot match.
bool HasConstantLeft(const Expr& e, Domain domain) {
  if (domain == Domain::kBool) return false;
  for (size_t i = 0; i < e.size; ++i) {
    if (e.tokens[i].kind != TokenKind::kOp) continue;
    if (!IsCommutative(static_cast<Op>(e.tokens[i].value), domain)) continue;
    if (IsConstantKind(e.tokens[i + 1].kind)) return true;
  }
  return false;
}

// Whether the expression is a bool whatever the type of its captures: a comparison, a predicate, or
// logic over these.
bool IsBoolExpr(const Expr& e, size_t position) {
  const Token t = e.tokens[position];
  if (t.kind == TokenKind::kPredicate) return true;
  if (t.kind != TokenKind::kOp) return false;
  const Op op = static_cast<Op>(t.value);
  if (GetOpInfo(op).comparison) return true;
  if (op == Op::kNot || op == Op::kAnd || op == Op::kOr || op == Op::kXor) {
    const size_t second = EndOfExpr(e, position + 1);
    return IsBoolExpr(e, position + 1) || (op != Op::kNot && IsBoolExpr(e, second));
  }
  return false;
}

void SetClasses(CompiledRule& row) {
  auto set = [&](RootClass c) { row.classes[static_cast<size_t>(c)] = true; };
  const bool comparison = GetOpInfo(row.root).comparison;
  row.root_is_bool = IsBoolExpr(row.before, 0);
  if (row.root_is_bool && !comparison) return set(RootClass::kBool);
  switch (row.rule->domain) {
    case Domain::kIndex:
      return set(RootClass::kIndex);
    case Domain::kInteger:
      return set(RootClass::kInteger);
    case Domain::kIntegral:
      set(RootClass::kIndex);
      return set(RootClass::kInteger);
    case Domain::kBool:
      return set(RootClass::kBool);
    case Domain::kFloat:
    case Domain::kFloatReassoc:
      return set(RootClass::kFloat);
    case Domain::kAny:
      row.classes.fill(true);
      return;
  }
}

uint64_t ChildMask(const Expr& e) {
  uint64_t mask = 0;
  for (size_t i = 1; i < e.size; i = EndOfExpr(e, i)) {
    const Token t = e.tokens[i];
    if (t.kind == TokenKind::kOp) {
      const bool is_number = e.tokens[i + 1].kind == TokenKind::kInfinity;
      mask |= OpBit(is_number ? Op::kConst : static_cast<Op>(t.value));
    } else if (IsConstantKind(t.kind)) {
      mask |= OpBit(Op::kConst);
    }
  }
  return mask;
}

}  // namespace

RootClass RootClassOf(const UOp* u) {
  const ScalarType s = GetOpInfo(u->op).comparison ? u->src(0)->dtype.scalar : u->dtype.scalar;
  if (s == ScalarType::kIndex) return RootClass::kIndex;
  if (s == ScalarType::kBool) return RootClass::kBool;
  if (IsFloat(s)) return RootClass::kFloat;
  return IsInteger(s) ? RootClass::kInteger : RootClass::kNone;
}

std::vector<CompiledRule> CompileRule(const Rule& rule) {
  std::vector<Expr> variants = {rule.before};
  for (size_t v = 0; v < variants.size(); ++v) {
    for (size_t i = 0; i < rule.before.size; ++i) {
      const Token t = variants[v].tokens[i];
      if (t.kind != TokenKind::kOp || !IsCommutative(static_cast<Op>(t.value), rule.domain))
        continue;
      const Expr swapped = SwapOperands(variants[v], i);
      const bool known = std::any_of(variants.begin(), variants.end(), [&](const Expr& e) {
        return std::equal(e.tokens.begin(), e.tokens.begin() + e.size, swapped.tokens.begin());
      });
      if (!known) variants.push_back(swapped);
    }
  }
  std::vector<CompiledRule> rows;
  std::vector<std::string> spellings;
  for (size_t v = 0; v < variants.size(); ++v) {
    if (v > 0 && HasConstantLeft(variants[v], rule.domain)) continue;
    // Rules that only arrange operands (x + (y + z) into (x + y) + z) would undo themselves.
    if (v > 0 && rule.descent == Descent::kOrder &&
        !IsSmaller(rule.domain, rule.after, variants[v])) {
      continue;
    }
    std::string spelling = Spelling(variants[v], rule);
    if (std::find(spellings.begin(), spellings.end(), spelling) != spellings.end()) continue;
    spellings.push_back(std::move(spelling));
    CompiledRule row;
    row.rule = &rule;
    row.before = variants[v];
    row.root = static_cast<Op>(variants[v].tokens[0].value);
    row.child_mask = ChildMask(variants[v]);
    SetClasses(row);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace quern
