import BlobHTTP
import Blobs
import CCurl

extension ConnectionWorker {
  /// Has the request completed. Returns what went wrong.
  func prepare(_ transfer: Transfer) -> TransportError? {
    guard let prepare = transfer.job.exchange.prepare else { return nil }
    let failure = outside(transfer) { () throws(BlobError) in
      try prepare(&transfer.request, transfer.job.cancellation)
    }
    return failure ?? transfer.request.problem(with: transfer.job.body)
  }

  /// Opens the body anew and learns its length.
  func openBody(_ transfer: Transfer) throws(TransportError) {
    guard let body = transfer.job.body else {
      transfer.length = 0
      return
    }
    let failure = outside(transfer) { () throws(BlobError) in
      let reader = try body.open(transfer.job.cancellation)
      transfer.reader = reader
      transfer.length = body.length ?? reader.info.length
      // Nothing will be read, so nothing else would ask.
      if transfer.length == 0 { try reader.finish() }
    }
    if let failure { throw failure }
  }

  /// Reads once from the source. nil: it failed, and `transfer.failure` says why.
  func read(_ transfer: Transfer, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
    var count = 0
    transfer.failure = outside(transfer) { () throws(BlobError) in count = try transfer.reader!.read(into: buffer) }
    if transfer.failure != nil { return nil }
    if count == 0, let length = transfer.length, transfer.given < length {
      let message = "\(transfer.job.name): the source ended at byte \(transfer.given) of \(length)"
      transfer.failure = TransportError(.source, message, cause: BlobError(.truncated, message))
      return nil
    }
    transfer.given += Int64(count)
    return count
  }

  /// Runs what may block for ever, so that a cancellation need not wait for it. Returns what went wrong.
  func outside(_ transfer: Transfer, _ body: () throws(BlobError) -> Void) -> TransportError? {
    guard transfer.job.leave() else { return cancelled(transfer) }
    var failure: BlobError?
    do throws(BlobError) { try body() } catch { failure = error }
    guard transfer.job.enter() else { return cancelled(transfer) }
    guard let failure else { return nil }
    if failure.code == .cancelled { return TransportError(.cancelled, failure.message, cause: failure) }
    return TransportError(.source, "\(transfer.job.name): \(failure.message)", cause: failure)
  }

  /// libcurl wants more of a streamed body.
  fileprivate func give(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    let transfer = transfer!
    // Never more than was announced, however the source has grown.
    let owed = transfer.length.map { Int(clamping: $0 - transfer.given) } ?? buffer.count
    if owed == 0 { return end(transfer) }
    // Before the source, which may take its time.
    report(transfer, by: handle!)
    let window = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(owed))
    guard let count = read(transfer, into: window) else { return fb_curl_read_abort() }
    if count == 0 { return end(transfer) }
    transfer.body.frame(count)
    return count
  }

  /// Nothing follows in the body: what libcurl is told then.
  private func end(_ transfer: Transfer) -> Int {
    // Where trailers follow, they are known after this.
    if transfer.job.exchange.trailers == nil { transfer.body.end([:]) }
    return 0
  }

  /// All of the body was read. The lines are libcurl's to free.
  fileprivate func trailers(_ list: UnsafeMutablePointer<UnsafeMutablePointer<curl_slist>?>) {
    let transfer = transfer!
    let trailers = transfer.job.exchange.trailers!()
    for (name, value) in trailers.fields {
      list.pointee = curl_slist_append(list.pointee, "\(name): \(value)")
    }
    transfer.body.end(trailers)
  }

  /// A kept-alive connection was found dead and the request begins again. Only a body that can be opened again is sent.
  func rewind(to offset: Int64) -> Int32 {
    let transfer = transfer!
    guard offset == 0, transfer.job.body?.source.access != .sequential else { return CURL_SEEKFUNC_CANTSEEK }
    let promised = transfer.length
    transfer.reader = nil
    transfer.given = 0
    transfer.body = SentBody(isChunked: transfer.body.isChunked)
    do throws(TransportError) {
      try openBody(transfer)
      if transfer.length == promised { return CURL_SEEKFUNC_OK }
      let message = "\(transfer.job.name): the source changed its length before it could be sent again"
      transfer.failure = TransportError(.source, message, cause: BlobError(.changed, message))
    } catch {
      transfer.failure = error
    }
    return CURL_SEEKFUNC_FAIL
  }

  /// libcurl has a connection, and is about to send the request, for the first time or again, unless it only connects.
  fileprivate func begin(from port: Int32) -> Int32 {
    let transfer = transfer!
    if handle!.use == .connection {
      hasConnected(transfer, from: port)
      return CURL_PREREQFUNC_OK
    }
    transfer.beginAttempt()
    let isAllowed = transfer.attempts == 1 || (transfer.job.mayBeRepeated && isAtStart(transfer))
    if isAllowed { return CURL_PREREQFUNC_OK }
    transfer.failure =
      transfer.failure
      ?? TransportError(
        .broken, "\(transfer.job.name): the connection broke, after \(transfer.sent) bytes were sent")
    return CURL_PREREQFUNC_ABORT
  }

  /// Makes sure of it: libcurl 7.88 does not rewind on a handle that has ever sent a small body, waits for an answer
  /// to what it has not sent, and so does the server.
  private func isAtStart(_ transfer: Transfer) -> Bool {
    handle!.use != .streamed || transfer.given == 0 || rewind(to: 0) == CURL_SEEKFUNC_OK
  }
}

// File-level functions, for a closure turned into a C function pointer next to an inout C struct crashes the compiler.

func readBody(
  _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  ConnectionWorker.from(context).give(UnsafeMutableRawBufferPointer(start: buffer, count: size * count))
}

func giveTrailers(
  _ list: UnsafeMutablePointer<UnsafeMutablePointer<curl_slist>?>?, _ context: UnsafeMutableRawPointer?
) -> Int32 {
  ConnectionWorker.from(context).trailers(list!)
  return CURL_TRAILERFUNC_OK
}

func rewindBody(_ context: UnsafeMutableRawPointer?, _ offset: curl_off_t, _ origin: Int32) -> Int32 {
  ConnectionWorker.from(context).rewind(to: Int64(offset))
}

func aboutToSend(
  _ context: UnsafeMutableRawPointer?, _ remote: UnsafeMutablePointer<CChar>?, _ local: UnsafeMutablePointer<CChar>?,
  _ remotePort: Int32, _ localPort: Int32
) -> Int32 {
  ConnectionWorker.from(context).begin(from: localPort)
}

extension ConnectionWorker {
  static func from(_ context: UnsafeMutableRawPointer?) -> ConnectionWorker {
    Unmanaged<ConnectionWorker>.fromOpaque(context!).takeUnretainedValue()
  }
}
