import Blobs

/// A gate at which threads wait until it is opened.
package final class ThreadGate: Sendable {
  private let state = Monitor((isOpen: false, visitors: 0))
  private struct Passing {
    var call: (@Sendable () -> Void)?
  }
  private let passing = Monitor(Passing())

  package init() {}

  /// Threads that wait at the gate, or have passed it.
  package var visitors: Int { state.update(waking: .none) { $0.visitors } }

  /// Opens the gate. `passed` is called on each thread that passes the gate.
  package func open(_ passed: (@Sendable () -> Void)? = nil) {
    passing.update { $0.call = passed }
    state.update { $0.isOpen = true }
  }

  /// Waits until a thread is at the gate; returns false after 30 s.
  package func awaitVisitor() -> Bool { state.wait(atMost: .seconds(30)) { $0.visitors > 0 ? true : nil } ?? false }

  package func pass(_ cancel: Cancellation) throws(BlobError) {
    let state = state
    state.update { $0.visitors += 1 }
    try cancel.whileWaiting(wakeUp: { state.update { _ in } }) { () throws(BlobError) in
      try state.wait { state throws(BlobError) -> Void? in
        try cancel.check("wait at a gate")
        return state.isOpen ? () : nil
      }
    }
    passing.update { $0.call }?()
  }
}

/// A source of which one kind of call waits at a gate, as that of a file on a disk that does not answer.
package struct GatedSource: BlobSource {
  package enum Place: Sendable, CaseIterable { case info, opening, reading, finishing }
  private let source: any BlobSource
  private let gate: ThreadGate
  private let place: Place
  private let start: Int64
  private let endsWhenCancelled: Bool

  /// - `start`: reads of earlier bytes do not wait.
  /// - `endsWhenCancelled`: false: a call that waits does not notice that it was cancelled.
  package init(
    source: any BlobSource, gate: ThreadGate, at place: Place, from start: Int64 = 0, endsWhenCancelled: Bool = true
  ) {
    self.source = source
    self.gate = gate
    self.place = place
    self.start = start
    self.endsWhenCancelled = endsWhenCancelled
  }

  package var access: BlobAccess { source.access }

  package func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try wait(at: .info, cancel)
    return try source.info(cancel)
  }

  package func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try wait(at: .opening, cancel)
    return Reader(try source.open(at: offset, cancel), self, offset, cancel)
  }

  private func wait(at call: Place, _ cancel: Cancellation) throws(BlobError) {
    if call == place { try gate.pass(endsWhenCancelled ? cancel : Cancellation()) }
  }

  private final class Reader: BlobReader {
    private let reader: any BlobReader
    private let source: GatedSource
    private var offset: Int64
    private let cancel: Cancellation

    init(_ reader: any BlobReader, _ source: GatedSource, _ offset: Int64, _ cancel: Cancellation) {
      (self.reader, self.source, self.offset, self.cancel) = (reader, source, offset, cancel)
    }

    var info: BlobInfo { reader.info }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      let isBefore = offset < source.start
      if !isBefore { try source.wait(at: .reading, cancel) }
      let most = isBefore ? Int(min(Int64(buffer.count), source.start - offset)) : buffer.count
      let count = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(most)))
      offset += Int64(count)
      return count
    }
    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) {
      try source.wait(at: .finishing, cancel)
      try reader.finish()
    }
  }
}
