import Blobs
import Foundation

extension StreamCore {
  /// Only the first call has an effect. If another thread is opening a synchronous stream, this call waits for the
  /// result.
  func open() {
    lock.lock()
    if case .synchronous = mode { awaitTurn() }
    guard phase == .new else { return unlock() }
    phase = .opening
    position.begin()
    isBusy = true
    unlock()
    switch mode {
    case .synchronous: openReader()
    case .opening(let threads): threads.run { self.openReader() }
    case .asynchronous(let threads): threads.run { self.fetch() }
    }
  }

  /// Returns the number of bytes read; 0 at the end; -1 before `open`, after `close`, after an error, and if no bytes
  /// are available yet.
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
    if !isBusy, let count = position.take(into: buffer) {
      settle()
      unlock()
      return count
    }
    if isAsynchronous {
      position.cameEarly = true
      unlock()
      return -1
    }
    return readSource(into: buffer)
  }

  /// The result of a `read` of no bytes: it neither waits nor moves, and 0 does not mean the end.
  func readNothing(_ count: Int) -> Int { locked { count == 0 && (isOpen || phase == .atEnd) ? 0 : -1 } }

  /// The buffered bytes; nil if there are none.
  func lend() -> UnsafeRawBufferPointer? { locked { isBusy || !isOpen || position.lent.isEmpty ? nil : position.lent } }

  /// Sets the offset at which `read` continues. Returns false and changes nothing after an error or `close`. If the
  /// offset is past the end, `read` reports that.
  func seek(to target: Int64) -> Bool {
    locked {
      switch phase {
      case .failed, .closed: return false
      case .new: position = ReadPosition(offset: target)
      case .opening: position.seek(to: target)
      case .open, .atEnd:
        phase = .open
        pending.drop(.endEncountered)
        position.seek(to: target)
        if !isBusy { settle() }
      }
      return true
    }
  }

  // MARK: With the turn (exclusive use of the reader)

  /// Waits while another thread has the turn. `close` wakes the waiting threads.
  private func awaitTurn() {
    while isBusy && phase != .closed { lock.wait() }
  }

  private func openReader() {
    let offset = locked { position.offset }
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

  /// Called with the lock; returns without it.
  private func readSource(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let reader = position.reader!
    let target = position.takeSeek()
    isBusy = true
    unlock()
    var count = -1
    do throws(BlobError) {
      if let target { try reader.seek(to: target) }
      let read = try reader.read(into: buffer)
      endTurn {
        count = read
        // Another thread may have set a new offset meanwhile.
        if position.mustSeek { return settle() }
        if read == 0 { return end() }
        position.took(read)
        settle()
      }
    } catch {
      endTurn { fail(error) }
    }
    return count
  }

  /// The next operation of an asynchronous stream on its reader.
  private enum Step {
    case open(at: Int64)
    case seek(BufferedReader, to: Int64)
    case fill(BufferedReader)
  }

  /// Runs on a thread of the pool, with the turn, until there is an event to send.
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
          locked { if reader.lent.isEmpty && !position.mustSeek && isOpen { end() } }
        }
      } catch {
        return endTurn { fail(error) }
      }
    }
  }

  /// Returns nil and gives up the turn if there are bytes, the end was reached, or the stream is no longer open.
  private func nextStep() -> Step? {
    var step: Step?
    endTurn {
      step = isOpen ? planned() : nil
      if step != nil { isBusy = true }
    }
    return step
  }

  private func planned() -> Step? {
    position.seekInBuffer()
    guard let reader = position.reader else { return .open(at: position.takeSeek() ?? position.offset) }
    if position.isAtEnd {
      end()
    } else if let target = position.takeSeek() {
      return .seek(reader, to: target)
    } else if reader.lent.isEmpty {
      return .fill(reader)
    } else {
      pending.add(.hasBytesAvailable)
    }
    return nil
  }

  private func makeReader(at offset: Int64) throws(BlobError) -> BufferedReader {
    try BufferedSource(WholeSource(source: source), block: block)
      .openBuffered(at: offset, always: isAsynchronous, cancel)
  }

  /// Gives up the turn and runs `body` with the lock, unless the stream was closed meanwhile. A reader that is no
  /// longer needed is released here, on the thread that used it.
  private func endTurn(_ body: () -> Void) {
    lock.lock()
    isBusy = false
    lock.broadcast()
    if phase != .closed { body() }
    let unwanted = phase == .closed || phase == .failed ? position.reader.take() : nil
    unlock()
    withExtendedLifetime(unwanted) {}
  }

  // MARK: With the lock

  private var isOpen: Bool { phase == .opening || phase == .open }

  private func opened(_ reader: BufferedReader, at place: Int64) {
    position.opened(reader, at: place)
    if phase == .closed { return }
    phase = .open
    pending.add(.openCompleted)
  }

  /// Sends the event for the current position: bytes available or the end; otherwise starts to fetch bytes.
  private func settle() {
    position.seekInBuffer()
    if position.isAtEnd {
      end()
    } else if !isAsynchronous || !position.lent.isEmpty {
      pending.add(.hasBytesAvailable)
    } else if case .asynchronous(let threads) = mode {
      pending.drop(.hasBytesAvailable)
      isBusy = true
      threads.run { self.fetch() }
    }
  }

  private func end() {
    phase = .atEnd
    pending.drop(.hasBytesAvailable)
    pending.add(.endEncountered)
  }

  private func fail(_ error: BlobError) {
    phase = .failed
    failure = error.streamError
    pending.drop(.hasBytesAvailable)
    pending.add(.errorOccurred)
  }
}
