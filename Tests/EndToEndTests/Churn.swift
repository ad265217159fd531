import Foundation
import Synchronization

/// A folder in which files change all the time: they are rewritten in place, replaced, renamed, truncated and deleted.
///
/// Every block of a file contains its version and the version's length, so a mixture of versions is detected.
final class Churn: Sendable {
  /// A version of a file: the number and length in its blocks, and the actual length.
  struct Version: Hashable, CustomStringConvertible {
    let number: Int
    let told: Int
    let length: Int
    var isWhole: Bool { told == length }
    var description: String { "version \(number), \(length) of \(told) bytes" }
  }

  private static let block = 512
  private struct State {
    var random: Seeded
    var number = 0
    /// Versions that were truncated on purpose, with their lengths.
    var cuts: Set<Version> = []
    var counts: [String: Int] = [:]
  }
  private let path: String
  private let state: Mutex<State>

  init(_ path: String, seed: UInt64) {
    self.path = path
    state = Mutex(State(random: Seeded(seed)))
  }

  var counts: [String: Int] { state.withLock { $0.counts } }
  func wasCutOnPurpose(_ version: Version) -> Bool { state.withLock { $0.cuts.contains(version) } }

  /// Makes one change, perhaps with pauses in it.
  func step() async throws {
    let (kind, name, other, pause) = state.withLock { state in
      (
        Int.random(in: 0..<10, using: &state.random), Self.name(&state.random), Self.name(&state.random),
        Int.random(in: 0..<120, using: &state.random)
      )
    }
    let (file, second) = ("\(path)/\(name)", "\(path)/\(other)")
    switch kind {
    case 0, 1: try await write(file, pause: pause)
    case 2: overwrite(file)
    case 3, 4:
      try await write("\(path)/.aside", pause: 0)
      count("replaced", rename("\(path)/.aside", file))
    case 5, 6: count("renamed", name == other ? -1 : rename(file, second))
    case 7: cut(file)
    case 8: count("deleted", unlink(file))
    default:
      let names = ["a", "b"].map { "\(path)/\($0)" }
      for (old, new) in [(names[0], "\(path)/.swap"), (names[1], names[0]), ("\(path)/.swap", names[1])] {
        count("folders renamed", rename(old, new))
      }
    }
  }

  /// Returns the version of the file's content; nil if it is a mixture.
  static func version(of path: String) throws -> Version? {
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    if bytes.isEmpty { return Version(number: 0, told: 0, length: 0) }
    var found: (number: Int, told: Int)?
    for (index, start) in stride(from: 0, to: bytes.count, by: block).enumerated() {
      let words = String(decoding: bytes[start..<min(start + 60, bytes.count)], as: UTF8.self).split(separator: " ")
      // The rest of a truncated block may be too short to contain its version.
      if bytes.count - start < 60, found != nil { break }
      guard words.count > 3, let number = Int(words[0]), let told = Int(words[1]), Int(words[2]) == index else {
        return nil
      }
      if let found, found != (number, told) { return nil }
      found = (number, told)
    }
    return found.map { Version(number: $0.number, told: $0.told, length: bytes.count) }
  }

  private static func name(_ random: inout Seeded) -> String {
    "\(["a", "b", "."].randomElement(using: &random)!)/IMG_\(Int.random(in: 0..<6, using: &random)).jpg"
  }

  private func content() -> [UInt8] {
    let (number, length) = state.withLock { state in
      state.number += 1
      return (state.number, Int.random(in: 100...(600 << 10), using: &state.random))
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(length + Self.block)
    for index in 0...(length / Self.block) {
      let line = Array("\(number) \(length) \(index) ".utf8)
      bytes += line + [UInt8](repeating: UInt8(ascii: "."), count: Self.block - line.count)
    }
    return Array(bytes.prefix(length))
  }

  /// Writes as a camera or a copy program does: from the start, piece by piece.
  private func write(_ file: String, pause: Int) async throws {
    let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    count("rewritten", min(descriptor, 0))
    if descriptor < 0 { return }
    defer { close(descriptor) }
    let bytes = content()
    for piece in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 3)) {
      let end = min(bytes.count, piece + max(1, bytes.count / 3))
      bytes.withUnsafeBytes { _ = Foundation.write(descriptor, $0.baseAddress! + piece, end - piece) }
      if pause > 0 { try await Task.sleep(for: .milliseconds(pause)) }
    }
  }

  /// Writes as a metadata editor does: over the existing bytes.
  private func overwrite(_ file: String) {
    let descriptor = open(file, O_WRONLY)
    count("overwritten", min(descriptor, 0))
    if descriptor < 0 { return }
    let bytes = content()
    bytes.withUnsafeBytes { _ = pwrite(descriptor, $0.baseAddress!, $0.count, 0) }
    ftruncate(descriptor, off_t(bytes.count))
    close(descriptor)
  }

  private func cut(_ file: String) {
    guard let version = try? Self.version(of: file), version.length > 120 else { return }
    let cut = Version(number: version.number, told: version.told, length: version.length / 2)
    state.withLock { _ = $0.cuts.insert(cut) }
    count("truncated", truncate(file, off_t(cut.length)))
  }

  private func count(_ what: String, _ status: Int32) {
    if status == 0 { state.withLock { $0.counts[what, default: 0] += 1 } }
  }
}
