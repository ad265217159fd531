import BlobHTTP
import Blobs

/// Why an upload did not go on, and what to do about it.
public struct UploadError: Error, Sendable, CustomStringConvertible {
  /// The only thing the uploader switches on.
  public enum Recovery: Sendable, Hashable {
    /// Try again, after the time the server asked for, or the policy's own.
    case retry(after: Duration?)
    /// Ask what the server holds, and go on from there.
    case resync
    /// The session is gone: begin anew.
    case restart
    /// The body is too large for something on the way: send less at once. `to` is what it was told to take; nil: nothing.
    case shrink(to: Int64?)
    /// The request does not get through in this form: send it again, which takes another one.
    case rephrase
    case giveUp
  }

  /// Who has to act. Decides the exit status of the command line.
  public enum Side: Sendable, Hashable {
    /// The file cannot be read, or changed meanwhile.
    case source
    /// The destination cannot be reached, or refuses us as a whole: nothing else can succeed there either.
    case destination
    /// The destination refuses this file: the name holds other bytes, it is too large.
    case file
    /// Our own memory of what was done cannot be kept.
    case journal
    case cancelled
  }

  public var recovery: Recovery
  public var side: Side
  public var message: String
  /// The status of the answer, where one came.
  public var status: Int?
  public var cause: (any Error)?

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

  /// No answer came. What the server did is not known, so it is asked; what can never succeed is given up.
  public init(_ error: TransportError) {
    let (recovery, side): (Recovery, Side) =
      switch error.code {
      case .cancelled: (.giveUp, .cancelled)
      case .source: (.giveUp, .source)
      case .tls, .untrusted, .proxy, .badRequest: (.giveUp, .destination)
      case .resolve, .connect: (.resync, .destination)
      // It may be this one file's fault; what became of the others tells.
      default: (.resync, .file)
      }
    self.init(recovery, side, error.message, cause: error.cause ?? error)
  }

  public init(_ error: BlobError) {
    self.init(.giveUp, error.code == .cancelled ? .cancelled : .source, error.message, cause: error)
  }
}

extension UploadError {
  /// With nothing more to be done about it.
  var final: UploadError {
    var error = self
    error.recovery = .giveUp
    return error
  }

  /// As the answer to a body that could be cut smaller. `told`: what the server says it takes in one request.
  func cuttable(_ told: Int64? = nil) -> UploadError {
    guard status == 413 else { return self }
    var error = self
    error.recovery = .shrink(to: told)
    return error
  }
}
