import BlobCrypto
import Blobs
import Synchronization

/// The source of an item whose ciphertext is uploaded. It has the validator of the plaintext, by which the journal knows
/// the item, and the length of the ciphertext. It can be opened once the queue has given it a key.
package final class SealedUpload: BlobSource {
  private struct Key {
    var source: SealedSource
    var boxed: String?
  }
  private let plain: any BlobSource
  let sealing: Sealing
  private let key = Mutex<Key?>(nil)
  package let access: BlobAccess

  package init(_ plain: any BlobSource, _ sealing: Sealing) {
    (self.plain, self.sealing, access) = (plain, sealing, plain.access)
  }

  package func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { sealed(try plain.info(cancel)) }

  package func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    guard let source = key.withLock({ $0?.source }) else {
      throw BlobError(.unsupported, "read a sealed file: the key that it was sent with is gone")
    }
    return try source.open(at: offset, cancel)
  }

  package func closeUntilNeeded() { plain.closeUntilNeeded() }

  /// Whether a later run may go on under the same key: the source can tell whether it is still the same, from any byte.
  func goesOn(_ info: BlobInfo) -> Bool { access == .random && info.validator != nil && info.length != nil }

  /// `info` of the plaintext with the length of the ciphertext.
  package func sealed(_ info: BlobInfo) -> BlobInfo {
    var info = info
    info.length = sealing.length(sealing: info.length)
    info.preferredRead = 0
    return info
  }

  /// From now on, the bytes are sealed with `seal`, which must have sealed no other version. `boxed`: the seal for the
  /// journal; nil: no later run may use it.
  func use(_ seal: FileSeal, for version: Validator?, boxed: String?) {
    let source = SealedSource(plain, seal, onlyFor: version, keepsValidator: true)
    key.withLock { $0 = Key(source: source, boxed: boxed) }
  }

  /// For the session of the upload in the journal.
  var boxed: String? { key.withLock { $0?.boxed } }
  /// Whether it can be opened.
  var hasKey: Bool { key.withLock { $0 != nil } }
}

extension UploadItem {
  /// Whether checksums of what was sent stay in the journal. The key of a sealed file is forgotten, so that they could be
  /// compared with nothing.
  var keepsChecksums: Bool { info.wantsTrace && !isSealed }

  package var isSealed: Bool { sealed != nil }
}

extension UploadSession {
  /// The seal of a sealed upload, encrypted under the key in the file beside the journal.
  var seal: String? {
    get { state["seal"] }
    set { state["seal"] = newValue }
  }
}
