import BlobCrypto
import BlobHTTP

/// Digests of the whole file in a request for an upload that is already finished. They may come too late for the
/// publication, if an earlier request has ended the upload.
struct LateDigests: Sendable {
  private let call: RoutedRequest
  private let file: OpenItem
  private let answer: @Sendable (ServerError?) -> Reply

  /// Compares the digests with the published file. `answer` gets nil if they match or there are none, otherwise the
  /// error of the mismatch. Throws 410 if the file was replaced.
  static func plan(
    _ call: RoutedRequest, _ saved: SavedUpload, _ answer: @escaping @Sendable (ServerError?) -> Reply
  ) throws(ServerError) -> Plan {
    let promised = try BodyDigests.values(of: .representation, call.headers) ?? [:]
    // The digests in the record were verified when the file was published.
    let known = saved.record.digest.flatMap { DigestField.values($0) } ?? [:]
    if let wrong = promised.first(where: { known[$0.key] ?? $0.value != $0.value }) {
      return .reply(answer(BodyDigests.mismatch(.representation, wrong.key)))
    }
    let unknown = promised.filter { known[$0.key] == nil }
    if unknown.isEmpty { return .reply(answer(nil)) }
    let file = try call.service.store.open(saved.record.target)
    if saved.record.published?.isVersion(of: file.item) == false {
      throw ServerError(410, "the upload is gone: \(saved.record.target) was replaced")
    }
    let digests = LateDigests(call: call, file: file, answer: answer)
    return .later { decided in digests.compare(Array(unknown)[...]) { decided(.reply($0)) } }
  }

  private func compare(
    _ promised: ArraySlice<(key: Digest.Algorithm, value: [UInt8])>, _ decided: @escaping @Sendable (Reply) -> Void
  ) {
    guard let (algorithm, value) = promised.first else { return decided(answer(nil)) }
    let client = DigestReader.Client(hasGone: { [call] in call.request.clientHasGone }) { result in
      switch result {
      // A client that has gone does not receive the response.
      case .success(let found) where found == nil || found == DigestField.text([algorithm: value]):
        compare(promised.dropFirst(), decided)
      case .success: decided(answer(BodyDigests.mismatch(.representation, algorithm)))
      case .failure(let error): decided(Reply(error))
      }
    }
    call.service.digestReader.ask(algorithm, of: file, for: client)
  }
}
