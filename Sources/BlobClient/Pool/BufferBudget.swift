import Synchronization

/// The memory for the buffers of a pool's transfers.
final class BufferBudget: Sendable {
  /// Bytes that are reserved for buffers of transfers.
  private let buffered = Atomic(0)
  /// The size of each buffer, as the caller has set it; nil: as the budget allows.
  private let fixed: Int?

  init(fixed: Int?) { self.fixed = fixed }

  /// Reserves bytes for one more upload buffer. All buffers together have `budget`: a few transfers get large buffers,
  /// many get small ones. Return the bytes with `returnBuffer`. `now`: the size of the worker's current buffer.
  func takeBuffer(isTLS: Bool, now: Int = 0, budget: Int = 2 << 20) -> Int {
    let free = budget - buffered.load(ordering: .relaxed)
    let most = isTLS ? 256 : 512
    // Powers of two only; otherwise a worker would ask for slightly more each time.
    let size = ([512, 256, 128, 64, 32].first { $0 <= most && $0 << 10 <= free } ?? 16) << 10
    return take(fixed ?? (now <= size && now * 2 >= size ? now : size))
  }

  /// Reserves bytes for another purpose of a transfer.
  func take(_ size: Int) -> Int {
    buffered.add(size, ordering: .relaxed)
    return size
  }

  func returnBuffer(_ size: Int) { buffered.subtract(size, ordering: .relaxed) }
}
