#include "execute/offloaded.h"

#include <utility>

namespace rehearse {

void Offloaded::leave(std::vector<Held>& held, const std::vector<Piece>& pieces, Pool& host,
                      kernels::Stream& stream) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    for (std::size_t matrix = 0; matrix < held[i].size(); ++matrix) {
      if (!held[i][matrix] || piece.of_loss[matrix]) continue;
      const std::size_t bytes = matrix_bytes(*piece.block, piece.places[matrix]);
      Memory device = std::exchange(held[i][matrix], nullptr), at_host = host.take(bytes);
      stream.copy(at_host.get(), device.get(), bytes);
      matrices_.push_back({i, matrix, bytes, std::move(device), std::move(at_host), nullptr});
    }
  }
}

void Offloaded::have_left() {
  for (Matrix& matrix : matrices_) matrix.left.reset();
}

void Offloaded::return_to(Pool& device, kernels::Stream& stream) {
  for (Matrix& matrix : matrices_) {
    matrix.returned = device.take(matrix.bytes);
    stream.copy(matrix.returned.get(), matrix.at_host.get(), matrix.bytes);
  }
}

void Offloaded::have_returned(std::vector<Held>& held) {
  for (Matrix& matrix : matrices_) held[matrix.piece][matrix.matrix] = std::move(matrix.returned);
  matrices_.clear();
}

}  // namespace rehearse
