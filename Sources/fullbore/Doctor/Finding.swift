/// One thing that is wrong between this machine and a server.
struct Finding: Sendable {
  /// The raw value is the finding's name in `--json`.
  enum Kind: String, Sendable, CaseIterable {
    case address
    case proxy
    case tlsHandshake = "tls-handshake"
    case tlsSelfSigned = "tls-self-signed"
    case tlsChain = "tls-chain"
    case tlsAuthority = "tls-authority"
    case tlsExpired = "tls-expired"
    case tlsExpiresSoon = "tls-expires-soon"
    case tlsNotYetValid = "tls-not-yet-valid"
    case tlsName = "tls-name"
    case tlsOther = "tls-other"
    /// A proxy answers, and the server behind it does not.
    case backend
    case refused
    case keepAlive = "keep-alive"
    case crossOrigin = "cors"
    case bodyLimit = "body-limit"
    case buffering
    case interim = "interim-responses"
    case method
    /// Something on the way removes a field of the protocol.
    case field
    case bodyTimeout = "body-timeout"
    case location
    case upload
    case removal
  }

  var kind: Kind
  /// The observation.
  var what: String
  /// The consequence for an upload.
  var consequence: String
  /// false: what was seen has another possible reason too, which `what` names.
  var isMeasured = true
  var mends: [Mend] = []
}

/// A change to the configuration of a server or a proxy that mends a finding.
struct Mend: Sendable, Hashable {
  /// nil: no program of a server.
  var program: ServerProgram?
  /// Where the lines belong.
  var place: String
  var lines: [String]
  /// The lines are no configuration, but say what to remove or to run.
  var isAdvice = false

  init(_ program: ServerProgram?, in place: String, _ lines: String...) {
    (self.program, self.place, self.lines) = (program, place, lines)
  }

  static func advice(_ program: ServerProgram?, _ text: String) -> Mend {
    var mend = Mend(program, in: "", text)
    mend.isAdvice = true
    return mend
  }
}
