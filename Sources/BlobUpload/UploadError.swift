import BlobHTTP
import Blobs

/// Why an upload stopped, and how to recover.
public struct UploadError: Error, Sendable, CustomStringConvertible {
  /// The recovery from the error. The uploader's decisions depend only on this value.
  public enum Recovery: Sendable, Hashable {
    /// Retry after the delay that the server asked for, or after the policy's own delay.
    case retry(after: Duration?)
    /// Ask the server which bytes it holds, and continue from there.
    case resync
    /// The session no longer exists: start a new upload.
    case restart
    /// The body is too large for the server or a proxy: send a smaller one. `to` is the limit that the server reports;
    /// nil: it reports none.
    case shrink(to: Int64?)
    /// The request does not get through in this form: send it again; the protocol now uses another form.
    case adapt
    /// Nothing helps: the upload ends with this error.
    case giveUp
  }

  /// Who must act. Decides the exit status of the command line tool.
  public enum Side: Sendable, Hashable {
    /// The file cannot be read, or has changed during the upload.
    case source
    /// The destination cannot be reached, or refuses all uploads: no other upload can succeed there either.
    case destination
    /// The destination refuses this file, for example because the name has other bytes or the file is too large.
    case file
    /// The journal cannot be written or read.
    case journal
    /// The caller has cancelled the upload.
    case cancelled
  }

  /// How to recover from the error.
  public var recovery: Recovery
  /// What failed.
  public var side: Side
  /// The operation, the place and the reason, without secrets.
  public var message: String
  /// The status of the response; nil: there was no response.
  public var status: Int?
  /// The error of a lower layer; nil if there is none.
  public var cause: (any Error)?

  /// Creates an error, for protocols and tests. `status` nil: there was no response.
  public init(
    _ recovery: Recovery, _ side: Side, _ message: String, status: Int? = nil, cause: (any Error)? = nil
  ) {
    self.recovery = recovery
    self.side = side
    self.message = message
    self.status = status
    self.cause = cause
  }

  public var description: String { message }

  /// No response arrived, so the effect on the server is unknown and the server is queried, unless the error can never
  /// succeed.
  public init(_ error: TransportError) {
    let (recovery, side): (Recovery, Side) =
      switch error.code {
      case .cancelled: (.giveUp, .cancelled)
      case .source: (.giveUp, .source)
      case .tls, .untrusted, .proxy, .badRequest: (.giveUp, .destination)
      case .resolve, .connect: (.resync, .destination)
      case .longResponse: (.giveUp, .file)
      // This file may be at fault; the results of other files show whether it is.
      default: (.resync, .file)
      }
    self.init(recovery, side, error.message, cause: error.cause ?? error)
  }

  /// An error of the source, which ends the upload.
  public init(_ error: BlobError) {
    self.init(.giveUp, error.code == .cancelled ? .cancelled : .source, error.message, cause: error)
  }
}

extension UploadError {
  /// The same error with recovery `.giveUp`.
  var final: UploadError {
    var error = self
    error.recovery = .giveUp
    return error
  }

  /// The same error, with recovery `.shrink` if it is the response 413 to a body that could be smaller. `told`: the
  /// limit for one request that the server reports.
  func cuttable(_ limit: Int64? = nil) -> UploadError {
    guard status == 413 else { return self }
    var error = self
    error.recovery = .shrink(to: limit)
    return error
  }
}
