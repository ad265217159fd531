import BlobClient
import BlobCrypto
import BlobSQLite
import BlobServer
import Blobs
import Platform

/// The text of `--version`: the release, the commit from which the program was built, and the libraries of the system
/// that it runs with.
struct ProgramVersion: Sendable {
  /// The first 64 bits of the commit's name; nil: the sources were those of an archive, or had changes of their own.
  var commit: UInt64?

  static var own: ProgramVersion { ProgramVersion(commit: linkedCommit) }

  var text: String {
    "fullbore \(Fullbore.version)\n\(commitText)\n\(Self.libraries.joined(separator: ", "))\n"
  }

  private var commitText: String {
    guard let commit else { return "no commit: built from an archive, from changed sources, or without scripts/build" }
    let digits = String(commit, radix: 16)
    return "commit " + String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// Libraries that are loaded only when they are needed are left out.
  private static var libraries: [String] {
    SocketTransport.libraryVersions + ["SQLite \(Database.libraryVersion)", archiveLibrary]
      + (hashLibrary.map { [$0] } ?? []) + [QRCode.library]
  }

  /// `scripts/build` has the linker define a symbol whose address is the commit, so that another commit compiles nothing
  /// anew.
  private static var linkedCommit: UInt64? {
    #if os(Linux)
      dlsym(nil, "fullbore_commit").map { UInt64(UInt(bitPattern: $0)) }
    #else
      nil
    #endif
  }
}
