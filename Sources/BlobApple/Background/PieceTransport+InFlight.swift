import BlobHTTP
import BlobUpload
import Blobs

// The engine asks here which requests the system may still be sending.
extension PieceTransport: RequestsInFlight {
  func range(appendingTo session: UploadSession) -> Range<Int64>? {
    guard let url = session.state["url"].flatMap({ HTTPURL($0) }) else { return nil }
    let place = TaskLabel.place(url)
    let append = service.registry.pending(upload).first {
      $0.version == version && $0.kind == .append && $0.place == place
    }
    guard let append, let length = append.length else { return nil }
    return append.start..<append.start.addingClamped(length)
  }

  func haveBytes(of body: BlobSlice) async throws(UploadError) -> Bool {
    let service = service
    for old in service.registry.pending(upload)
    where old.kind == .append && old.start == body.start && old.length == body.length {
      await waitForSource()
      let isSame: Bool
      do {
        isSame = try await readingSource { cancel, _ throws(BlobError) in
          try service.spool.has(body, as: old, cancel)
        }
        noteReading(nil)
      } catch {
        noteReading(error.cause as? BlobError)
        throw error
      }
      if !isSame { service.discard(old) }
      return isSame
    }
    return false
  }
}
