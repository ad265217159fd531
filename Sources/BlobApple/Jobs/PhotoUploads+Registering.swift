import BlobHTTP
import BlobMedia
import BlobUpload

// Registers jobs for the photos that are not at the destination yet.
extension PhotoUploads {
  /// Registers up to `room` jobs: photos that have failed come after all others, so that they do not hold these up. Returns
  /// whether no further photo waits for a job.
  func fill(_ room: Int, _ occupied: [String: Int]) async throws(Interruption) -> Bool {
    var pass = Pass(room: room)
    guard try await fill(&pass, occupied) else { return false }
    if !pass.findsDue { return !pass.findsWaiting }
    pass.isForFailed = true
    return try await fill(&pass, occupied) && !pass.findsWaiting
  }

  /// A pass over the photo library.
  private struct Pass {
    var room: Int
    /// Photos that have failed are registered, and no others.
    var isForFailed = false
    /// A photo that has failed is tried again by a later run.
    var findsWaiting = false
    /// A photo that has failed is to be tried again in this run.
    var findsDue = false
  }

  /// Returns false when there is no room for a file.
  private func fill(_ pass: inout Pass, _ occupied: [String: Int]) async throws(Interruption) -> Bool {
    let next = try ask { () throws(PhotoJobError) in try system.assets() }
    while case let page = next(), !page.isEmpty {
      for asset in page where try await !isSettled(asset) {
        try checkTermination()
        guard try await fill(&pass, with: asset, occupied) else { return false }
      }
    }
    return true
  }

  private func isSettled(_ asset: PhotoAsset) async throws(Interruption) -> Bool {
    try await note { () throws(JournalError) in
      try await ledger.settledVersion(of: asset.id, at: destination.place(of: account)) == asset.version
    }
  }

  /// Returns false when there is no room for a file of this asset.
  private func fill(
    _ pass: inout Pass, with asset: PhotoAsset, _ occupied: [String: Int]
  ) async throws(Interruption) -> Bool {
    guard let resources = try unlessGone({ () throws(PhotoJobError) in try system.resources(of: asset) }) else {
      return true
    }
    var isSettled = plan.isWhole(resources)
    for item in plan.items(of: resources) {
      let resource = resources[item.index]
      let source = Self.source(asset, resource)
      guard let (url, row) = try await place(asset, item.name, source), !row.isSettled(asset.version) else { continue }
      isSettled = false
      if row.isOpen || occupied[row.key] != nil { continue }
      let hasFailed = row.version == asset.version && row.attempts > 0 && row.error != nil
      let mayBeTried = !hasFailed || row.state != .waiting || row.isDue(at: now())
      if !mayBeTried { pass.findsWaiting = true }
      if hasFailed, mayBeTried { pass.findsDue = true }
      if hasFailed != pass.isForFailed || !mayBeTried { continue }
      if pass.room <= 0 || evidence.unregistered.count >= PhotoEvidence.mostUnregistered { return false }
      try checkTermination()
      if try await register(resource, asset, url, row) { pass.room -= 1 }
    }
    if isSettled {
      try await note { () throws(JournalError) in
        try await ledger.settle(asset.id, asset.version, at: destination.place(of: account))
      }
    }
    return true
  }

  /// Names a file of an asset in the ledger.
  private static func source(_ asset: PhotoAsset, _ resource: AssetResource) -> String {
    let number = resource.ordinal == 0 ? "" : "\n\(resource.ordinal)"
    return "\(asset.id)\n\(resource.kind?.rawValue ?? 0)\n\(resource.filename)\(number)"
  }

  /// The URL for a file, and what is known of it. nil: other files have all its URLs.
  private func place(
    _ asset: PhotoAsset, _ name: String, _ source: String
  ) async throws(Interruption) -> (HTTPURL, JournalJob)? {
    for url in destination.urls(asset, name) {
      let known = try await note { () throws(JournalError) in
        try await ledger.job(at: url.text, account: account)
      }
      let row = known ?? JournalJob(url.text, account: account, source: source)
      if row.source == source { return (url, row) }
    }
    return nil
  }

  /// Returns whether the job takes up room.
  private func register(
    _ resource: AssetResource, _ asset: PhotoAsset, _ url: HTTPURL, _ before: JournalJob
  ) async throws(Interruption) -> Bool {
    guard
      let request = destination.request(
        url, of: try session(), version: asset.version, created: asset.created, replaces: before.done != nil)
    else {
      throw .failed("\(url) is not below \(destination.folder)")
    }
    var row = before
    if row.done == Self.overtaken { row.done = JournalJob.unknownVersion }
    if row.version != asset.version {
      (row.version, row.attempts, row.error) = (asset.version, 0, nil)
    }
    row.attempts += 1
    row.state = .registering
    try await keep(row)
    do throws(PhotoJobError) {
      try system.create(resource, of: asset, to: request)
    } catch {
      switch error.code {
      // The system may have the job all the same; the next run finds out. The other photos do not wait for that.
      case .failed:
        row.giveUpOrWait(since: "\(error)", whileOthersArrive: false)
        try await keep(row)
        evidence.registrationError = evidence.registrationError ?? "\(error)"
        if row.state == .waiting { evidence.unregistered.append(row) }
        return false
      case .limit:
        try await keep(before)
        throw .stopped
      case .gone:
        (row.state, row.error) = (.refused, "\(error)")
        try await keep(row)
        return false
      }
    }
    evidence.registered += 1
    row.state = .registered
    try await keep(row)
    return true
  }

  /// After a success, all photos that wait are tried again at once. Otherwise finds out whether there is an outage.
  func lookAtWaiting() async throws(Interruption) {
    let waiting = try await note { () throws(JournalError) in try await ledger.waiting() }
      .filter { $0.account == account }
    if evidence.succeeded == 0 {
      evidence.isOutage = waiting.count >= PhotoEvidence.outageFrom
      return
    }
    for var row in waiting {
      try checkTermination()
      row.state = .idle
      try await keep(row)
    }
  }

  /// Gives up the photos that could not be registered while others could.
  func judgeUnregistered() async throws(Interruption) {
    guard evidence.registered > 0 || evidence.succeeded > 0 else { return }
    for var row in evidence.unregistered where row.attempts >= 2 {
      row.giveUpOrWait(since: row.error, whileOthersArrive: true)
      try await keep(row)
    }
    evidence.unregistered.removeAll { $0.attempts >= 2 }
  }
}
