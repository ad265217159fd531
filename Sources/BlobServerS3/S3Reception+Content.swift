import BlobCrypto
import BlobServer

extension S3Reception {
  /// The content to publish: bytes that one request sends, or else parts. `digests` are those of the pieces of the file.
  struct Content: Sendable {
    var bytes: [UInt8]?
    var stored: StoredBytes
    var digests: [PieceDigest]
    var length: Int64 { digests.reduce(0) { $0 + $1.length } }
  }

  /// Ends the reception: all bytes are in parts, or are few enough for one request.
  func content() throws(ServerError) -> Content {
    try change { (state) throws(ServerError) in
      if state.sender != nil { throw ServerError(500, "the upload \(id) is still being written") }
      if state.buffer.isEmpty, state.current.tail.length > 0 {
        state.buffer = try store.tails.read(of: id, state.current.tail)
      }
      // A multipart upload is completed once at most, also if a server that was stopped goes on with that later.
      let isOnce = isShared && !state.buffer.isEmpty && !store.isUnsaved(id)
      if state.current.session == nil, !isOnce {
        let bytes = state.buffer
        let digest = PieceDigest(length: Int64(bytes.count), sha256: Digest.hex(of: bytes, .sha256))
        return Content(bytes: bytes, stored: state.current, digests: [digest])
      }
      if !state.buffer.isEmpty { try sendBuffer(&state, isLast: true) }
      return Content(bytes: nil, stored: state.current, digests: state.current.digests)
    }
  }
}
