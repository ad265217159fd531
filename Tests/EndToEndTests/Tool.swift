import Foundation
import Testing

/// Paths of programs.
enum Tool {
  /// `$FULLBORE`, otherwise the binary that was built beside these tests.
  static let fullbore =
    ProcessInfo.processInfo.environment["FULLBORE"]
    ?? URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
    .appendingPathComponent("fullbore").path

  static let checkout = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// Finds a program in `$PATH` or in the folders for servers; nil if there is none.
  static func find(_ name: String) -> String? {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
    return (folders + ["/usr/sbin", "/sbin"]).map { "\($0)/\(name)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// A number from the environment, for longer runs.
  static func number(_ name: String, default value: Int) -> Int {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? value
  }
}

/// A folder of one test, removed with everything in it.
final class Scratch: Sendable {
  let path: String

  init() throws {
    let template = FileManager.default.temporaryDirectory.appendingPathComponent("fullbore-test-XXXXXX").path
    var bytes = Array(template.utf8CString)
    guard mkdtemp(&bytes) != nil else {
      throw Command.Failure("no folder \(template): \(String(cString: strerror(errno)))")
    }
    path = String(decoding: bytes.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func path(_ name: String) -> String { "\(path)/\(name)" }

  /// A name that does not exist yet.
  func newPath(_ name: String) -> String { path("\(name)-\(UInt64.random(in: 0...UInt64.max))") }

  @discardableResult
  func folder(_ name: String) throws -> String {
    try FileManager.default.createDirectory(atPath: path(name), withIntermediateDirectories: true)
    return path(name)
  }

  /// Creates a file of `size` bytes and its folders. Every block of 4 KiB contains its own number, which reveals bytes
  /// that arrive at another offset.
  @discardableResult
  func file(_ name: String, _ size: Int, seed: UInt64 = 1) throws -> String {
    let path = path(name)
    let url = URL(fileURLWithPath: path)
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data().write(to: url)
    let file = try FileHandle(forWritingTo: url)
    var random = Seeded(seed &+ UInt64(size))
    var block = (0..<(1 << 17)).map { _ in random.next() }
    var written = 0
    while written < size {
      for page in stride(from: 0, to: block.count, by: 512) { block[page] = random.next() }
      let count = min(size - written, block.count * 8)
      try block.withUnsafeBytes { try file.write(contentsOf: Data($0.prefix(count))) }
      written += count
    }
    try file.close()
    try age(name)
    return path
  }

  /// Creates a sparse file of zeros.
  @discardableResult
  func hole(_ name: String, _ size: Int) throws -> String {
    try Data().write(to: URL(fileURLWithPath: path(name)))
    guard truncate(path(name), size) == 0 else { throw Command.Failure("\(name) cannot be \(size) bytes long") }
    try age(name)
    return path(name)
  }

  /// Makes a file old enough that a push reads it only once: a recently written file is checked twice.
  func age(_ name: String) throws {
    let then = Date(timeIntervalSince1970: 1_700_000_000)
    try FileManager.default.setAttributes([.modificationDate: then], ofItemAtPath: path(name))
  }

  /// Makes a file of 20,000 bytes, all from `seed`, that was not written just now.
  func photo(_ name: String, seed: UInt64) throws {
    try file(name, 20_000, seed: seed)
    try age(name)
  }
}

/// SplitMix64: the same numbers for the same seed, on every machine.
struct Seeded: RandomNumberGenerator {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
