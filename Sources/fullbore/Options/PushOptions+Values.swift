import BlobCrypto
import Blobs

// Values that are checked by themselves: of a push, and of a place before it is used.
extension PushOptions {
  static func partSize(_ arguments: Arguments) throws(UsageError) -> Int64? {
    try arguments.parsed("part-size", wanted: "a size of at least 1K, like 8M") { text in
      Quantity.size(text).flatMap { $0 >= 1024 ? $0 : nil }
    }
  }

  static func checksum(_ arguments: Arguments) throws(UsageError) -> Digest.Algorithm? {
    let known = Digest.Algorithm.all.map(\.name).joined(separator: ", ")
    return try arguments.parsed("checksum", wanted: "one of \(known)") { Digest.Algorithm($0) }
  }

  /// In bytes.
  static func spoolMemory(_ arguments: Arguments) throws(UsageError) -> Int? {
    try arguments.parsed("spool-memory", wanted: "a size from 128K to 64G, like 32M") { text in
      Quantity.size(text).flatMap { 128 << 10...64 << 30 ~= $0 ? Int($0) : nil }
    }
  }

  static func editQuality(_ arguments: Arguments) throws(UsageError) -> Int? {
    try arguments.count("edit-quality", 1...100)
  }

  /// Checks the settings of a place, as far as they do not depend on each other, on files or on a server.
  static func checkValues(of place: Place) throws(UsageError) {
    let arguments = Arguments(place.withoutFiles, WatchCommand.declaration)
    _ = try PaceOptions(arguments)
    var connection = try ConnectionOptions(arguments)
    try connection.s3.takeObjectOptions(arguments)
    _ = try partSize(arguments)
    _ = try checksum(arguments)
    _ = try spoolMemory(arguments)
    _ = try editQuality(arguments)
    _ = try GlobFilter(arguments, [])
    _ = try FormOptions(arguments)
    try SealOptions.checkKeys(arguments)
    let layout = try gallery(arguments).0
    _ = try NameConflict(arguments, counts: layout?.has(.counter) == true)
    _ = try WatchOptions.settle(arguments)
    _ = try WatchOptions.rescan(arguments)
  }
}

extension Place {
  /// Without the settings that name files of this machine, which may be away.
  fileprivate var withoutFiles: Place {
    var place = self
    for option in Self.settings {
      let isFile = values[option.name]?.contains { $0.bytes.first == UInt8(ascii: "@") } == true && option.mayNameFile
      if option.namesFile || isFile || option.name == "netrc" { place.values[option.name] = nil }
    }
    return place
  }
}
