import Blobs
import Platform

/// A form written into a file, for background sessions and other programs that can upload only files.
///
/// The caller deletes the file.
public struct PreparedForm: Sendable {
  /// The file that contains the body.
  public let path: BytePath
  /// Bytes of the body.
  public let length: Int64
  /// The value of `Content-Type`, with the boundary.
  public let contentType: String

  /// The body; each attempt opens the file again.
  public var body: BlobSlice { BlobSlice(FileSource(path), length: length) }

  /// A request with the form's `Content-Type` and `Content-Length`.
  public func request(to url: HTTPURL, method: String = "POST") -> HTTPRequest {
    HTTPRequest(method, url, ["Content-Type": contentType, "Content-Length": String(length)])
  }
}

/// Why a form could not be written into a file. No incomplete file remains.
public struct FormPreparationError: Error, Sendable, CustomStringConvertible {
  /// The side that failed.
  public enum Side: Sendable, Hashable {
    /// A part cannot be read, or it has changed.
    case media
    /// The file cannot be created or written.
    case body
    /// The disk or the user's quota is full.
    case diskFull
    /// The preparation was cancelled.
    case cancelled
  }

  /// What failed.
  public var side: Side
  /// The operation, the place and the reason.
  public var message: String
  /// The error of the source or of the file.
  public var cause: BlobError

  init(_ side: Side, _ cause: BlobError) {
    self.side = cause.code == .cancelled ? .cancelled : side
    message = cause.message
    self.cause = cause
  }

  /// A system call that creates or writes the file has failed.
  init(_ number: Int32, _ operation: String) {
    self.init([ENOSPC, EDQUOT].contains(number) ? .diskFull : .body, systemError(number, operation))
  }

  public var description: String { message }
}

extension MultipartForm {
  /// Called with the bytes written so far and the total; `length` is nil if the total is known only at the end.
  public typealias PreparationProgress = @Sendable (_ written: Int64, _ length: Int64?) -> Void

  /// Writes the form into a new file with mode 0600. `progress` is called on the writing thread.
  ///
  /// If the file exists already, this throws `.body` and does not touch it. Cancelling the task ends this with
  /// `.cancelled`, at the latest after the read in progress.
  public func prepare(
    to path: BytePath, progress: @escaping PreparationProgress = { _, _ in }
  ) async throws(FormPreparationError) -> PreparedForm {
    let cancel = Cancellation()
    let result = await withTaskCancellationHandler {
      await preparing.run { Result { () throws(FormPreparationError) in try write(to: path, progress, cancel) } }
    } onCancel: {
      cancel.cancel()
    }
    return try result.get()
  }

  /// Like the async `prepare`, but returns at once. Exactly one of `completion` and `failure` is called, once, on a
  /// background thread. Cancelling the returned object ends the preparation, which then fails with `.cancelled`.
  @discardableResult
  public func prepare(
    to path: BytePath, progress: @escaping PreparationProgress = { _, _ in },
    completion: @escaping @Sendable (PreparedForm) -> Void,
    failure: @escaping @Sendable (FormPreparationError) -> Void
  ) -> Cancellation {
    let cancel = Cancellation()
    preparing.submit {
      do throws(FormPreparationError) {
        completion(try write(to: path, progress, cancel))
      } catch {
        failure(error)
      }
    }
    return cancel
  }

  func write(
    to path: BytePath, _ progress: PreparationProgress, _ cancel: Cancellation
  ) throws(FormPreparationError) -> PreparedForm {
    let descriptor = path.withCString { makeFile($0) }
    if descriptor < 0 { throw FormPreparationError(errno, "make \(path)") }
    let length: Int64
    do throws(FormPreparationError) {
      defer { closeFile(descriptor) }
      length = try write(into: descriptor, named: path, progress, cancel)
    } catch {
      path.withCString { _ = unlink($0) }
      throw error
    }
    return PreparedForm(path: path, length: length, contentType: contentType)
  }

  /// Returns the number of bytes written.
  func write(
    into descriptor: Int32, named path: BytePath, _ progress: PreparationProgress, _ cancel: Cancellation
  ) throws(FormPreparationError) -> Int64 {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    let reader = try reading { () throws(BlobError) in try BlobSlice(self).open(cancel) }
    var written: Int64 = 0
    while true {
      let count = try reading { () throws(BlobError) in
        try cancel.check("write \(path)")
        return try reader.read(into: buffer)
      }
      if count == 0 { return written }
      try writeAll(UnsafeRawBufferPointer(rebasing: buffer.prefix(count)), to: descriptor, path, at: written)
      written += Int64(count)
      progress(written, reader.info.length)
    }
  }

  private func reading<Result>(_ body: () throws(BlobError) -> Result) throws(FormPreparationError) -> Result {
    do throws(BlobError) { return try body() } catch { throw FormPreparationError(.media, error) }
  }
}

// Global functions, because `open` and `close` would name methods inside the types above.
private func makeFile(_ path: UnsafePointer<CChar>) -> Int32 {
  open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
}
private func closeFile(_ descriptor: Int32) { close(descriptor) }

private func writeAll(
  _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, _ path: BytePath, at offset: Int64
) throws(FormPreparationError) {
  var rest = bytes
  while !rest.isEmpty {
    let count = write(descriptor, rest.baseAddress, rest.count)
    if count < 0 && errno == EINTR { continue }
    if count < 0 { throw FormPreparationError(errno, "write \(path) at byte \(offset)") }
    rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
  }
}

/// Writing a form blocks its thread until all parts are read.
private let preparing = BlockingPool("form", threads: 16, patience: .seconds(5))
