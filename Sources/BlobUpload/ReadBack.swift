import BlobHTTP
import Blobs
import Platform
import Synchronization

extension Uploader {
  /// Reads the upload back and compares it with the source, byte by byte, both as streams.
  ///
  /// Only for servers that return a file under its URL; for others an error is thrown. `location`: from `UploadResult`;
  /// a tus server or a form receiver may have the bytes only there. Returns the URL that was read.
  @discardableResult
  public func verify(
    _ source: any BlobSource, _ info: BlobInfo, at target: UploadTarget, location: String? = nil
  ) async throws(UploadError) -> HTTPURL {
    let slice = BlobSlice(source, length: info.length, validator: info.validator)
    var place = target.url
    do throws(UploadError) {
      try await patiently("\(target.path)") { () async throws(UploadError) in
        let context = context()
        place = try await destination.dialect.place(of: target, location: location, context)
        try await context.compare(slice, with: place)
      }
    } catch {
      throw destination.dialect.judge(readingBack: error, location: location)
    }
    return place
  }
}

extension UploadContext {
  /// Reads the content of `url` and compares it with `slice`. A difference throws an error with `.giveUp`, side `.file`
  /// and no status.
  func compare(_ slice: BlobSlice, with url: HTTPURL) async throws(UploadError) {
    let read = try await readBack(slice, from: url)
    if read.response.status != 200 { throw UploadError(reading: read.request, read.response) }
  }

  /// Sends GET for `url`. If the response is 200, its content is compared with `slice`, and a difference is thrown as
  /// by `compare`. `mayBeShort`: content that ends before the slice does is not a difference.
  func readBack(
    _ slice: BlobSlice, from url: HTTPURL, mayBeShort: Bool = false
  ) async throws(UploadError) -> ReadBack {
    var request = HTTPRequest("GET", url)
    let comparison = Comparison(slice, url)
    let answered: HTTPResponse
    do {
      answered = try await send(
        following: &request,
        Exchange(received: { bytes throws(BlobError) in
          server.compared(bytes.count)
          try comparison.take(bytes)
        }))
    } catch {
      throw comparison.difference ?? error
    }
    guard answered.status == 200 else { return ReadBack(request: request, response: answered) }
    let end = try await readingSource { _, _ throws(BlobError) in
      Result { () throws(UploadError) in try comparison.end(mayBeShort: mayBeShort) }
    }
    return ReadBack(request: request, response: answered, isShort: try !end.get())
  }
}

/// A response whose content was compared, if its status is 200.
struct ReadBack: Sendable {
  /// The request for this response, after redirects.
  var request: HTTPRequest
  var response: HTTPResponse
  /// The content ended before the slice did, without a difference before that.
  var isShort = false
}

extension UploadError {
  /// The response to a GET for a comparison has another status than 200.
  init(reading request: HTTPRequest, _ response: HTTPResponse) {
    self.init(request, response)
    message = "\(request.method) \(request.url): cannot be read back: \(response.summary)"
    if case .retry = recovery { return }
    (recovery, side) = (.giveUp, .file)
  }
}

/// Compares received bytes with the source. One worker's thread at a time calls `take`.
private final class Comparison: @unchecked Sendable {
  // `lock` guards all properties below. It is held while the source is read; no other thread waits for it.
  private let lock = Mutex(())
  private let slice: BlobSlice
  private let url: HTTPURL
  private var reader: (any BlobReader)?
  private var buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  private var offset: Int64 = 0
  private var found: UploadError?

  init(_ slice: BlobSlice, _ url: HTTPURL) {
    self.slice = slice
    self.url = url
  }

  deinit { buffer.deallocate() }

  var difference: UploadError? { lock.withLock { _ in found } }

  func take(_ bytes: UnsafeRawBufferPointer) throws(BlobError) {
    let error: BlobError? = lock.withLock { _ in
      do throws(BlobError) {
        try compare(bytes)
        return nil
      } catch {
        return error
      }
    }
    if let error { throw error }
  }

  private func compare(_ bytes: UnsafeRawBufferPointer) throws(BlobError) {
    let reader: any BlobReader
    if let open = self.reader { reader = open } else { reader = try slice.open(Cancellation()) }
    self.reader = reader
    var rest = bytes
    while !rest.isEmpty {
      let window = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(rest.count))
      let count = try reader.read(into: window)
      if count == 0 { throw differs("the server has more than \(offset) bytes") }
      if memcmp(window.baseAddress!, rest.baseAddress!, count) != 0 {
        throw differs("what the server has differs within \(count) bytes after byte \(offset)")
      }
      offset += Int64(count)
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
    }
  }

  private func differs(_ how: String) -> BlobError {
    let message = "GET \(url): \(how)"
    found = UploadError(.giveUp, .file, message)
    return BlobError(.changed, message)
  }

  /// Called when all content was received: the source must have no more bytes, unless it `mayBeShort`. Returns whether
  /// it has none. Blocks.
  func end(mayBeShort: Bool) throws(UploadError) -> Bool {
    do throws(BlobError) {
      return try isWhole(mayBeShort)
    } catch {
      throw difference ?? UploadError(error)
    }
  }

  private func isWhole(_ mayBeShort: Bool) throws(BlobError) -> Bool {
    let result: Result<Bool, BlobError> = lock.withLock { _ in
      do throws(BlobError) {
        let reader = if let open = self.reader { open } else { try slice.open(Cancellation()) }
        if try reader.read(into: buffer) == 0 { return .success(true) }
        if mayBeShort { return .success(false) }
        throw differs("the server has only \(offset) bytes\(slice.length.map { " of \($0)" } ?? "")")
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }
}
