import Blobs
import Foundation

extension StreamCore {
  /// Only the first call does anything; where another is at it, a synchronous one waits for the outcome.
  func open() {
    lock.lock()
    if case .synchronous = manner { awaitTurn() }
    guard phase == .new else { return unlock() }
    phase = .opening
    start = offset
    isBusy = true
    unlock()
    switch manner {
    case .synchronous: openReader()
    case .opening(let threads): threads.run { self.openReader() }
    case .asynchronous(let threads): threads.run { self.fetch() }
    }
  }

  /// Bytes read; 0 at the end, -1 before `open`, after `close`, after an error, and where they are yet to come.
  func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    lock.lock()
    if !isAsynchronous { awaitTurn() }
    switch phase {
    case .new, .closed, .failed:
      unlock()
      return -1
    case .atEnd:
      unlock()
      return 0
    case .opening, .open: break
    }
    if !isBusy, !lent.isEmpty {
      let count = reader!.take(into: buffer)
      took(count)
      unlock()
      return count
    }
    if isAsynchronous {
      cameEarly = true
      unlock()
      return -1
    }
    return readSource(into: buffer)
  }

  /// What `read` of no bytes answers: it neither waits nor moves, and 0 is not the end.
  func readNothing(_ count: Int) -> Int { locked { count == 0 && (isOpen || phase == .atEnd) ? 0 : -1 } }

  /// The bytes at hand; nil if there are none.
  func lend() -> UnsafeRawBufferPointer? { locked { isBusy || !isOpen || lent.isEmpty ? nil : lent } }

  /// Where `read` goes on. False, and nothing changed, after an error or `close`. An offset past the end is met by `read`.
  func seek(to target: Int64) -> Bool {
    locked {
      switch phase {
      case .failed, .closed: return false
      case .new: offset = target
      case .opening:
        offset = target
        mustSeek = true
      case .open, .atEnd:
        phase = .open
        pending.remove(.endEncountered)
        offset = target
        mustSeek = true
        if !isBusy { settle() }
      }
      return true
    }
  }

  // MARK: With the turn

  /// While another thread has it. Whoever closes wakes those who wait.
  private func awaitTurn() {
    while isBusy && phase != .closed { lock.wait() }
  }

  private func openReader() {
    let offset = locked { self.offset }
    do throws(BlobError) {
      let reader = try makeReader(at: offset)
      endTurn {
        opened(reader, at: offset)
        settle()
      }
    } catch {
      endTurn { fail(error) }
    }
  }

  /// With the lock, which is gone afterwards.
  private func readSource(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let reader = reader!
    let from = offset
    let seeks = mustSeek
    mustSeek = false
    isBusy = true
    unlock()
    var count = -1
    do throws(BlobError) {
      if seeks { try reader.seek(to: from) }
      let read = try reader.read(into: buffer)
      endTurn {
        count = read
        // Someone may have set another offset meanwhile.
        if mustSeek { settle() } else if read == 0 { end() } else { took(read) }
      }
    } catch {
      endTurn { fail(error) }
    }
    return count
  }

  /// What an asynchronous stream does next with its reader.
  private enum Step {
    case open(at: Int64)
    case seek(BufferedReader, to: Int64)
    case fill(BufferedReader)
  }

  /// On a thread of its own, with the turn: until there is something to tell.
  private func fetch() {
    while let step = nextStep() {
      do throws(BlobError) {
        switch step {
        case .open(let offset):
          let reader = try makeReader(at: offset)
          locked { opened(reader, at: offset) }
        case .seek(let reader, let offset):
          try reader.seek(to: offset)
        case .fill(let reader):
          try reader.fill()
          locked { if reader.lent.isEmpty && !mustSeek && isOpen { end() } }
        }
      } catch {
        return endTurn { fail(error) }
      }
    }
  }

  /// nil gives the turn back: there are bytes, or the end, or nobody wants them any more.
  private func nextStep() -> Step? {
    var step: Step?
    endTurn {
      step = isOpen ? planned() : nil
      if step != nil { (isBusy, mustSeek) = (true, false) }
    }
    return step
  }

  private func planned() -> Step? {
    guard let reader else { return .open(at: offset) }
    if mustSeek && reader.move(to: offset) { mustSeek = false }
    if offset == length {
      end()
    } else if mustSeek {
      return .seek(reader, to: offset)
    } else if reader.lent.isEmpty {
      return .fill(reader)
    } else {
      tell(.hasBytesAvailable)
    }
    return nil
  }

  private func makeReader(at offset: Int64) throws(BlobError) -> BufferedReader {
    try BufferedSource(WholeSource(source: source), block: block)
      .openBuffered(at: offset, always: isAsynchronous, cancel)
  }

  /// Runs `body` with the lock, unless the stream was closed meanwhile. A reader that is not wanted any more goes here,
  /// on the thread that used it.
  private func endTurn(_ body: () -> Void) {
    var unwanted: BufferedReader?
    lock.lock()
    isBusy = false
    lock.broadcast()
    if phase != .closed { body() }
    if phase == .closed || phase == .failed { swap(&unwanted, &reader) }
    unlock()
  }

  // MARK: With the lock

  private var isOpen: Bool { phase == .opening || phase == .open }

  private func opened(_ reader: BufferedReader, at place: Int64) {
    self.reader = reader
    if phase == .closed { return }
    // What the reader knows is what is left from its place on.
    length = reader.info.length.map { place + $0 }
    phase = .open
    tell(.openCompleted)
  }

  private func took(_ count: Int) {
    offset += Int64(count)
    cameEarly = false
    settle()
  }

  /// Says, wherever `offset` has come to, what is there: bytes, the end, or that they have to be fetched.
  private func settle() {
    if mustSeek && reader!.move(to: offset) { mustSeek = false }
    if offset == length {
      end()
    } else if !isAsynchronous || !lent.isEmpty {
      tell(.hasBytesAvailable)
    } else if case .asynchronous(let threads) = manner {
      pending.remove(.hasBytesAvailable)
      isBusy = true
      threads.run { self.fetch() }
    }
  }

  private func end() {
    phase = .atEnd
    pending.remove(.hasBytesAvailable)
    tell(.endEncountered)
  }

  private func fail(_ error: BlobError) {
    phase = .failed
    failure = error.streamError
    pending.remove(.hasBytesAvailable)
    tell(.errorOccurred)
  }
}
