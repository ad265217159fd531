import BlobHTTP
import BlobUpload
import Blobs

// Several destinations of one push.
extension PushOptions {
  /// The options for each destination. The first one is the last operand.
  var all: [PushOptions] { [self] + also }

  /// The files that are sent are the same for all destinations, so the options that choose them are.
  static func check(_ arguments: Arguments, choosesAs first: Arguments) throws(UsageError) {
    let choosing = ["include", "exclude", "hidden", "edits", "edit-quality", "settle", "rescan", "on-done"]
    guard let name = choosing.first(where: { !arguments.agrees(with: first, on: $0) }) else { return }
    throw UsageError(
      "a place says another '\(name)' for it than for the destination at the end, and all destinations of a command get the "
        + "same files: give --\(name) to the command, or send there by a command of its own")
  }

  /// Sets what the destinations share, once all are known.
  mutating func becomeSeveral(_ arguments: Arguments) throws(UsageError) {
    try checkPlaces()
    if arguments.isTyped("bwlimit") { limiter = pace.limiter }
    let all = all
    becomeOne(of: all, limiter)
    for index in also.indices { also[index].becomeOne(of: all, limiter) }
  }

  private mutating func becomeOne(of all: [PushOptions], _ limiter: RateLimiter?) {
    self.limiter = limiter
    if all.count(where: { $0.title == title }) > 1 { title = "\(destination.endpoint)" }
    if pace.jobs == nil { pace.jobs = OpenFiles.mostJobs(ofEach: all.count) }
    // The bytes that are held of a pipe for all destinations must fit into the memory of one.
    if readsStandardInput, spool == SpoolOptions(folder: spool.folder) {
      let most = (32 << 20) / all.count
      spool.memory = destination.s3 == nil ? min(spool.memory, most) : most
    }
    // Parts that are sent at the same time would have a source that is no file read several times.
    if !urls.isEmpty || !databases.isEmpty { pace.partsAtOnce = pace.partsAtOnce ?? 1 }
  }

  /// Throws if two destinations are the same, or if one is in the other.
  private func checkPlaces() throws(UsageError) {
    let all = all
    for (index, options) in all.enumerated() {
      for other in all[..<index] where options.destination.overlaps(other.destination) {
        throw UsageError(
          "\(options.destination.endpoint) and \(other.destination.endpoint) are the same destination, or one is in the "
            + "other: give one of the two")
      }
    }
  }
}

extension Destination {
  /// Whether both are the same place, or one is below the other.
  func overlaps(_ other: Destination) -> Bool {
    if let address, let s3, let otherAddress = other.address, let otherS3 = other.s3 {
      // The bucket may be in the host's name or in the path.
      return address.bucket == otherAddress.bucket && Self.isSame(address.endpoint, otherAddress.endpoint)
        && Self.areNested(s3.prefix, otherS3.prefix)
    }
    guard endpoint.isAtSamePort(as: other.endpoint) else { return false }
    return Self.areNested(Array(endpoint.normalized.path.utf8), Array(other.endpoint.normalized.path.utf8))
  }

  private static func isSame(_ endpoint: String?, _ other: String?) -> Bool {
    guard let endpoint = endpoint.flatMap(HTTPURL.init), let other = other.flatMap(HTTPURL.init) else {
      return endpoint == other
    }
    return endpoint.isAtSamePort(as: other)
  }

  private static func areNested(_ path: [UInt8], _ other: [UInt8]) -> Bool {
    func folder(_ path: [UInt8]) -> [UInt8] {
      path.isEmpty || path.last == UInt8(ascii: "/") ? path : path + [UInt8(ascii: "/")]
    }
    let (path, other) = (folder(path), folder(other))
    return path.starts(with: other) || other.starts(with: path)
  }
}

extension HTTPURL {
  /// Whether both URLs are certainly of one server: the same scheme and port, and the same host or two names of this machine.
  /// Nothing is looked up, so two names of another machine are not recognized.
  fileprivate func isAtSamePort(as other: HTTPURL) -> Bool {
    scheme == other.scheme && port == other.port && comparableHost == other.comparableHost
  }

  /// Without the dot of the root. `localhost` is what both addresses are called that a server of this machine may listen at;
  /// another one, such as 127.0.0.2, may be another server.
  private var comparableHost: Substring {
    let name = host.hasSuffix(".") ? host.dropLast() : host[...]
    return ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"].contains(name) ? "localhost" : name
  }
}
