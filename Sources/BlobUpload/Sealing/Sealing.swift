import BlobCrypto
import Blobs

/// For whom the files of a destination are sealed before they leave. See `SealedSource`.
package struct Sealing: Sendable, Hashable {
  package let recipients: [SealRecipient]
  /// Bytes before the chunks of each file.
  private let prefixCount: Int64
  /// A digest of the public keys, or of the fact that there is a passphrase: what is sealed for others is another file.
  let digest: String
  /// The opaque names that files get; nil: they keep theirs. Files that are sent under other names are other uploads.
  package var names: SealedNames?

  /// Throws `.unsupported` as `SealedSource.init`.
  package init(for recipients: [SealRecipient]) throws(BlobError) {
    self.recipients = recipients
    prefixCount = Int64(try FileSeal(to: recipients.map(\.forMeasuring)).prefix.count)
    digest = Digest.hex(of: Array(recipients.map(\.description).sorted().joined(separator: "\n").utf8), .sha256)
  }

  /// The ending of the names of sealed files.
  package static let ending: BytePath = ".age"

  /// Whether a name, or a path, ends as that of a sealed file, with something before the ending.
  package static func isName(_ bytes: some BidirectionalCollection<UInt8>) -> Bool {
    bytes.count > ending.bytes.count && bytes.suffix(ending.bytes.count).elementsEqual(ending.bytes)
  }

  /// Bytes of a sealed file; nil: they are more than a file can have, or `length` is unknown.
  package func length(sealing length: Int64?) -> Int64? {
    guard let length, let chunks = FileSeal.chunks(sealing: length) else { return nil }
    let (sum, isOver) = chunks.addingReportingOverflow(prefixCount)
    return isOver ? nil : sum
  }

  /// Whether a key takes about a second.
  var isSlow: Bool { recipients.contains(where: \.isPassphrase) }

  /// A key for one file. A passphrase takes about a second and much memory, so there is one at a time, on a thread that may
  /// block; public keys take 0.1 ms.
  func newSeal() async throws(UploadError) -> FileSeal {
    let make: @Sendable () -> Result<FileSeal, BlobError> = { [recipients] in
      Result { () throws(BlobError) in try FileSeal(to: recipients) }
    }
    let seal = isSlow ? await Self.threads.run(make) : make()
    do { return try seal.get() } catch { throw UploadError(error) }
  }

  /// Whether the seal of an earlier run is for these recipients. Public keys are part of the entry's key in the journal, and
  /// a passphrase is not.
  func isFor(_ seal: FileSeal) async -> Bool {
    guard let identity = recipients.first?.passphraseIdentity else { return true }
    return await Self.threads.run { seal.isFor(identity) }
  }

  private static let threads = BlockingPool("fullbore-seal", threads: 1)
}
