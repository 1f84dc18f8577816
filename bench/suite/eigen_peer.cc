#include "bench/suite/peer.h"

#ifdef QUERN_BENCH_EIGEN

#include <Eigen/Core>
#include <algorithm>

#include "bench/suite/thread_team.h"
#include "rewrite/concat.h"

namespace quern {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Input = Eigen::Map<const Matrix>;
using Output = Eigen::Map<Matrix>;
using Vector = Eigen::Map<const Eigen::VectorXf>;
using OutputVector = Eigen::Map<Eigen::VectorXf>;

// Rows `from`.. of C, columns `column`.., by whichever of the four layouts it is.
void Block(const Workload& w, const float* a, const float* b, float* c, int64_t from, int64_t rows,
           int64_t column, int64_t columns) {
  Output out(c, w.m, w.n);
  const Input plain_b(b, w.transposed_b ? w.n : w.k, w.transposed_b ? w.k : w.n);
  if (w.transposed_a) {
    out.block(from, column, rows, columns).noalias() =
        Input(a, w.k, w.m).middleCols(from, rows).transpose() * plain_b.middleCols(column, columns);
  } else if (w.transposed_b) {
    out.block(from, column, rows, columns).noalias() =
        Input(a, w.m, w.k).middleRows(from, rows) * plain_b.middleRows(column, columns).transpose();
  } else {
    out.block(from, column, rows, columns).noalias() =
        Input(a, w.m, w.k).middleRows(from, rows) * plain_b.middleCols(column, columns);
  }
}

std::function<void()> Product(const Workload& w, const Buffers& buffers, int threads) {
  const float* a = buffers.Get("A");
  const float* b = buffers.Get("B");
  float* c = buffers.Get("C");
  if (w.m == 1) {
    return [=] {
      InParallel(threads, w.n, 16, [&](int64_t begin, int64_t end) {
        OutputVector(c + begin, end - begin).noalias() =
            Input(b, w.k, w.n).middleCols(begin, end - begin).transpose() * Vector(a, w.k);
      });
    };
  }
  if (w.n == 1) {
    return [=] {
      InParallel(threads, w.m, 16, [&](int64_t begin, int64_t end) {
        OutputVector(c + begin, end - begin).noalias() =
            Input(a, w.m, w.k).middleRows(begin, end - begin) * Vector(b, w.k);
      });
    };
  }
  if (w.batch > 1) {
    return [=] {
      InParallel(threads, w.batch, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          Block(w, a + i * w.m * w.k, b + i * w.k * w.n, c + i * w.m * w.n, 0, w.m, 0, w.n);
        }
      });
    };
  }
  // Its own threads need OpenMP; parts of the longer side are what those would do.
  if (w.flops < 4e6) threads = 1;
  if (w.m >= w.n) {
    return [=] {
      InParallel(threads, w.m, 16, [&](int64_t begin, int64_t end) {
        Block(w, a, b, c, begin, end - begin, 0, w.n);
      });
    };
  }
  return [=] {
    InParallel(threads, w.n, 16,
               [&](int64_t begin, int64_t end) { Block(w, a, b, c, 0, w.m, begin, end - begin); });
  };
}

std::function<void()> Other(const Workload& w, const Buffers& buffers, int threads) {
  if (w.kind == WorkloadKind::kMulAdd) {
    const float* a = buffers.Get("A");
    const float* b = buffers.Get("B");
    const float* c = buffers.Get("C");
    float* y = buffers.Get("Y");
    return [=] {
      InParallel(threads, w.m, 16, [&](int64_t begin, int64_t end) {
        const int64_t size = end - begin;
        OutputVector(y + begin, size) =
            Vector(a + begin, size).cwiseProduct(Vector(b + begin, size)) + Vector(c + begin, size);
      });
    };
  }
  if (w.is_dense()) return {};
  const float* x = buffers.Get("X");
  float* to = buffers.Get(w.output);
  switch (w.kind) {
    case WorkloadKind::kSum:
      if (threads > 1) return {};
      return [=] { *to = Vector(x, w.m).sum(); };
    case WorkloadKind::kNorm:
      if (threads > 1) return {};
      return [=] { *to = Vector(x, w.m * w.n).norm(); };
    case WorkloadKind::kRowSum:
      return [=] {
        InParallel(threads, w.m, 16, [&](int64_t begin, int64_t end) {
          OutputVector(to + begin, end - begin) =
              Input(x, w.m, w.n).middleRows(begin, end - begin).rowwise().sum();
        });
      };
    case WorkloadKind::kColumnSum:
      return [=] {
        InParallel(threads, w.n, 16, [&](int64_t begin, int64_t end) {
          Eigen::Map<Eigen::RowVectorXf>(to + begin, end - begin) =
              Input(x, w.m, w.n).middleCols(begin, end - begin).colwise().sum();
        });
      };
    case WorkloadKind::kSoftmax:
      return [=] {
        InParallel(threads, w.m, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const auto row = Eigen::Map<const Eigen::ArrayXf>(x + i * w.n, w.n);
            auto out = Eigen::Map<Eigen::ArrayXf>(to + i * w.n, w.n);
            out = (row - row.maxCoeff()).exp();
            out *= 1 / out.sum();
          }
        });
      };
    case WorkloadKind::kTranspose:
      return [=] {
        InParallel(threads, w.m, 16, [&](int64_t begin, int64_t end) {
          Output(to, w.n, w.m).middleCols(begin, end - begin).noalias() =
              Input(x, w.m, w.n).middleRows(begin, end - begin).transpose();
        });
      };
    default:
      return {};
  }
}

}  // namespace

Peer EigenPeer() {
  Peer peer;
  peer.name = "Eigen";
  peer.details = Concat("version ", EIGEN_WORLD_VERSION, ".", EIGEN_MAJOR_VERSION, ".",
                        EIGEN_MINOR_VERSION, ", ", Eigen::SimdInstructionSetsInUse());
  peer.found = true;
  peer.set_threads = [](int) {};
  peer.bind = [name = peer.name](const Workload& w, const Buffers& buffers, int threads) {
    if (!w.is_product()) return Peer::Single(name, Other(w, buffers, threads));
    if (w.dtype != "f32") return std::vector<PeerCall>();
    return Peer::Single(name, Product(w, buffers, threads));
  };
  return peer;
}

}  // namespace quern

#else

namespace quern {

Peer EigenPeer() {
  Peer peer;
  peer.name = "Eigen";
  peer.details = "not found when this program was configured";
  return peer;
}

}  // namespace quern

#endif
