// Uploads that several servers share.
extension Uploads {
  /// Gets the claim to the upload, if the store shares its uploads with other servers. What this server knew of the upload
  /// is forgotten if another one may have changed it since. Blocks.
  func claim(_ id: UploadID) throws(ServerError) {
    guard let claims = store.abilities.claims else { return }
    switch try claims.claim(id, waits: true) {
    case .taken:
      let outdated = state.withLock { $0.live.removeValue(forKey: id)?.upload }
      _ = outdated?.letGo()
    // Another server has finished or deleted the upload, unless this one has not saved it yet.
    case .unknown: if state.withLock({ $0.live[id]?.upload })?.canBeFound == true { _ = letGo(id) }
    case .held, .refused: break
    }
  }

  /// Ends the use of the upload by this server. Returns false if the upload is being published.
  func letGo(_ id: UploadID) -> Bool {
    let upload = state.withLock { $0.live[id]?.upload }
    guard let upload else { return true }
    if !upload.letGo() { return false }
    state.withLock { state in if state.live[id]?.upload === upload { state.live[id] = nil } }
    return true
  }
}
