#ifndef QUERN_TESTS_FUZZ_RANDOM_CHAIN_H_
#define QUERN_TESTS_FUZZ_RANDOM_CHAIN_H_

#include <string>
#include <vector>

#include "rewrite/concat.h"
#include "tests/fuzz/test_buffers.h"

namespace quern {

/// A formula of two to four statements, each of which reads what those before have written.
struct RandomChain {
  std::string formula;
  std::string sizes;
};

/// Makes chains over one or two outer variables that most statements share, with columns of their
/// own: products, row reductions, what is done with each element, windows, rows turned around; and
/// now and then a read of another row, after which that loop is shared no longer.
class ChainGenerator {
 public:
  explicit ChainGenerator(Random& random) : random_(random) {}

  RandomChain Make() {
    static const std::vector<int64_t> kRows = {1, 2, 3, 5, 8, 12, 16, 24};
    static const std::vector<int64_t> kColumns = {1, 3, 4, 7, 8, 16, 16, 17, 32, 33, 48};
    heads_ = random_.Chance(40);
    const int statements = static_cast<int>(random_.Between(2, 4));
    RandomChain chain;
    chain.sizes = Concat("i=", random_.Pick(kRows));
    if (heads_) Append(chain.sizes, ",h=", random_.Between(1, 4));
    // Columns a and b, and the depth of products from inputs.
    for (const char* name : {"a", "b", "c"}) {
      Append(chain.sizes, ",", name, "=", random_.Pick(kColumns));
    }
    for (int i = 0; i < statements; ++i) {
      if (i > 0) chain.formula += "; ";
      chain.formula += Statement(i, i + 1 == statements);
    }
    // Variables that nothing uses have no size to give.
    for (const char* name : {"a", "b", "c"}) {
      if (Uses(chain.formula, *name)) continue;
      const size_t at = chain.sizes.find(Concat(",", name, "="));
      chain.sizes.erase(at, chain.sizes.find(',', at + 1) - at);
    }
    return chain;
  }

 private:
  struct Written {
    std::string name;
    char column = 0;  // 0: one number for each row
  };

  static bool Uses(const std::string& formula, char variable) {
    for (size_t i = 1; i + 1 < formula.size(); ++i) {
      const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
      if (formula[i] == variable && !letter(formula[i - 1]) && !letter(formula[i + 1])) return true;
    }
    return false;
  }

  std::string Rows() const { return heads_ ? "h,i" : "i"; }
  char AnyColumn() { return random_.Chance(50) ? 'a' : 'b'; }

  std::string Statement(int number, bool last) {
    const std::string name = last ? std::string("Out") : Concat("T", number);
    const bool row_only = !last && number > 0 && random_.Chance(15);
    const char column = row_only ? 0 : AnyColumn();
    std::string value = Value(number, column);
    std::string left = Concat(name, "[", Rows());
    if (column != 0) Append(left, ",", std::string(1, column));
    written_.push_back({name, column});
    return Concat(left, "] = ", value);
  }

  // A new input for each read: its shape follows from the indices.
  std::string Input(std::string_view index) { return Concat("I", inputs_++, "[", index, "]"); }

  std::string Value(int number, char column) {
    if (number == 0) return Concat(First(column), RowTerm());
    // The last one for sure, now and then an older one, too.
    std::string value = Use(written_.back(), column);
    if (number > 1 && random_.Chance(40)) {
      Append(value, " + ", Use(written_[random_.Below(number - 1)], column));
    }
    if (random_.Chance(20)) Append(value, " * 0.5");
    return Concat(value, RowTerm());
  }

  // An input that several statements may read at the same place.
  std::string RowTerm() {
    if (!random_.Chance(30)) return "";
    if (!heads_) return " + R[i]";
    return random_.Chance(50) ? " + R[i]" : " + G[h,i]";
  }

  std::string First(char column) {
    const std::string own(1, column);
    if (random_.Chance(70)) {
      const bool shared = heads_ && random_.Chance(50);
      return Concat("sum[c](", Input(Concat(Rows(), ",c")), "*",
                    Input(Concat(shared ? "h," : "",
                                 random_.Chance(50) ? Concat("c,", own) : Concat(own, ",c"))),
                    ")*0.125");
    }
    return Concat(Input(Concat(Rows(), ",", own)), "*", Input(own));
  }

  // A term for each row, and each column if `column` is not 0, made from `t`.
  std::string Use(const Written& t, char column) {
    const std::string rows = Concat(t.name, "[", Rows());
    if (t.column == 0) return Concat(rows, "]");
    const std::string of(1, t.column);
    const std::string read = Concat(rows, ",", of, "]");
    const std::string own(1, column == 0 ? 'c' : column);
    if (column == 0) {
      return random_.Chance(50) ? Concat("max[", of, "](", read, ")")
                                : Concat("sum[", of, "](", read, ")*0.1");
    }
    if (t.column != column) {
      switch (random_.Below(4)) {
        case 0:
          return Concat("max[", of, "](", read, ")*", Input(own));
        default:
          return Concat("sum[", of, "](", read, "*",
                        Input(random_.Chance(50) ? Concat(of, ",", own) : Concat(own, ",", of)),
                        ")*0.1");
      }
    }
    switch (random_.Below(9)) {
      case 0:
        return Concat("exp(", read, " - max[", of, "](", read, "))");
      case 1:
        return Concat(read, " - sum[", of, "](", read, ")*0.1");
      case 2:
        return Concat("max(", read, ", 0)");
      case 3:
        return Concat("pad(", rows, ",", of, "+1])*", Input(own));
      case 4:
        return Concat("pad(", rows, ",", of, "*-1+5])");
      case 5:  // Of another row: no loop over rows is shared.
        return Concat("pad(", t.name, "[", heads_ ? "h," : "", "i-1,", of, "]) + ", read);
      case 6:
        return Concat("max(", read, ", max[", of, "](", read, ")*0.5)");
      default:
        return Concat(read, "*", Input(Concat(Rows(), ",", own)));
    }
  }

  Random& random_;
  bool heads_ = false;
  int inputs_ = 0;
  std::vector<Written> written_;
};

}  // namespace quern

#endif  // QUERN_TESTS_FUZZ_RANDOM_CHAIN_H_
