import Blobs

/// A source whose bytes leave encrypted, as a file of age (c2sp.org/age, version 1), so that only its recipients can read
/// what a server stores. `age -d` opens it. Reading may start at any offset, and nothing is held but a chunk of 64 KiB.
///
/// **Hidden** are the bytes; a change of them is detected by whoever opens the file. **Not hidden** are the length, which is
/// that of the ciphertext less some hundred bytes and 16 for each 64 KiB, the number of files, the time of an upload, and
/// for how many recipients it is. For a recipient who is an SSH key, the file also says which one. A sealed file does not
/// say who has sealed it: everyone who has the public keys can.
///
/// Each `SealedSource` has a key of its own, so that two of them give different bytes for one source. Copies share the key.
/// Two plaintexts are never sealed with it: a source is opened in one version only, and that is checked after each read,
/// before the bytes are encrypted. A source that is read once and has no validator is read from the first byte to the last.
public struct SealedSource: BlobSource {
  private let source: any BlobSource
  private let seal: FileSeal
  private let progress: SealingProgress
  private let keepsValidator: Bool

  /// Makes a key for `source`, without opening it. It takes about a second for a passphrase, and blocks. Throws
  /// `.unsupported` without recipients, and for a passphrase beside other recipients.
  public init(_ source: any BlobSource, to recipients: [SealRecipient]) throws(BlobError) {
    self.init(source, try FileSeal(to: recipients))
  }

  /// `version`: the only one that may be sealed; nil: the one that is opened first. `keepsValidator`: the validator is that
  /// of `source`, for a caller that uses each seal for one version and asks nobody to tell seals apart.
  package init(
    _ source: any BlobSource, _ seal: FileSeal, onlyFor version: Validator? = nil, keepsValidator: Bool = false
  ) {
    (self.source, self.seal, self.keepsValidator) = (source, seal, keepsValidator)
    progress = SealingProgress(version)
  }

  public var access: BlobAccess { source.access }

  public func closeUntilNeeded() { source.closeUntilNeeded() }

  /// The length is that of the ciphertext; nil if the source's is unknown. The validator differs for each key. Throws
  /// `.unsupported` for a source without a validator that can be read more than once: it could change unnoticed in between.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try sealed(try source.info(cancel)) }

  /// Throws `.changed` if the source has another version than the one that was opened first. A source that is read once can
  /// be opened where the last reader stopped; one that has a validator, also at its start.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    if offset < 0 { throw BlobError(.outOfRange, "open a sealed source at byte \(offset)") }
    return access == .random ? try openAnywhere(offset, cancel) : try openNext(offset, cancel)
  }

  private func openAnywhere(_ offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    // The length is asked for first: at the end of the ciphertext, no chunk begins.
    let now = try source.info(cancel)
    let whole = try sealed(now).length
    let pass = ChunkPass(.seal, seal, at: offset)
    if let whole, offset > whole {
      throw BlobError(.outOfRange, "open a sealed source at byte \(offset): it has \(whole)")
    }
    let isAtEnd = offset == whole
    let reader = try source.open(at: isAtEnd ? now.length ?? 0 : pass.sourceOffset, cancel)
    let info = try sealed(reader.info)
    try progress.check(reader.info.validator, from: offset)
    if isAtEnd {
      pass.end()
    } else if info.length == nil {
      try pass.settle(reader, asksBeforeEach: true)
    }
    return ChunkReader(reader, pass, info, length: reader.info.length, asksBeforeEach: true)
  }

  private func openNext(_ offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let pass = try progress.begin(at: offset) { ChunkPass(.seal, seal, at: 0) }
    do {
      let reader = try source.open(at: pass.sourceOffset, cancel)
      let info = try sealed(reader.info)
      try progress.check(reader.info.validator, from: offset)
      return ChunkReader(
        reader, pass, info, length: reader.info.length, asksBeforeEach: info.validator != nil
      ) { [progress] in progress.ended() }
    } catch {
      progress.ended()
      throw error
    }
  }

  private func sealed(_ info: BlobInfo) throws(BlobError) -> BlobInfo {
    var sealed = info
    if let length = info.length {
      guard let whole = seal.length(sealing: length) else {
        throw BlobError(.unsupported, "seal a source of \(length) bytes: it would be longer than a file can be")
      }
      sealed.length = whole
    }
    sealed.preferredRead = 0
    guard let validator = info.validator else {
      if access == .sequential { return sealed }
      throw BlobError(.unsupported, "seal a source: it cannot tell one version from another")
    }
    if keepsValidator { return sealed }
    sealed.validator = Validator(
      version: seal.name(of: validator.version),
      instance: validator.instance.isEmpty ? "" : seal.name(of: validator.instance))
    return sealed
  }
}

/// The version that is sealed with a key, and, for a source that is read once, how far. Copies of a source share this state.
private final class SealingProgress: Sendable {
  private struct State {
    var version: Validator?
    var isBound: Bool
    /// One reader at a time uses it.
    var pass: ChunkPass?
    var isRead = false
  }
  private let state: Monitor<State>

  init(_ version: Validator?) { state = Monitor(State(version: version, isBound: version != nil)) }

  /// Throws if a source is of another version than the one that is sealed with the key.
  func check(_ version: Validator?, from offset: Int64) throws(BlobError) {
    let isRight = state.update { state in
      if !state.isBound { (state.version, state.isBound) = (version, true) }
      return state.version == version
    }
    if !isRight { throw BlobError.changed(from: offset) }
  }

  /// The pass of a source that is read once.
  func begin(at offset: Int64, _ new: () -> ChunkPass) throws(BlobError) -> ChunkPass {
    try state.update { state throws(BlobError) in
      if state.isRead { throw BlobError(.unsupported, "open a sealed source: another reader is at it") }
      // A source that has a version may be sealed again from its first byte.
      if offset == 0, state.version != nil { state.pass = nil }
      let next = state.pass?.offset ?? 0
      if next != offset {
        throw BlobError(
          .outOfRange, "open a sealed source at byte \(offset): it is at byte \(next), and is read once only")
      }
      let pass = state.pass ?? new()
      (state.pass, state.isRead) = (pass, true)
      return pass
    }
  }

  func ended() { state.update { $0.isRead = false } }
}
