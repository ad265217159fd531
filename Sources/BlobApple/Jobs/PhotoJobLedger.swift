import BlobUpload
import Blobs

/// The records of jobs that earlier runs have registered. The journal is the one ledger outside tests.
protocol PhotoJobLedger: Sendable {
  func job(at url: String, account: String?) async throws(JournalError) -> JournalJob?
  func jobs(at url: String) async throws(JournalError) -> [JournalJob]
  func keep(_ job: JournalJob) async throws(JournalError)
  func open() async throws(JournalError) -> [JournalJob]
  func refused() async throws(JournalError) -> [JournalJob]
  func waiting() async throws(JournalError) -> [JournalJob]
  func settledVersion(of asset: String, at folder: String) async throws(JournalError) -> String?
  func settle(_ asset: String, _ version: String, at folder: String) async throws(JournalError)
  func unsettle(_ asset: String) async throws(JournalError)
}

extension JournalJobs: PhotoJobLedger {}

/// A journal that is opened by the first call, because the initializer of an extension cannot wait for that.
actor UnopenedJournal: PhotoJobLedger {
  private let path: BytePath
  private var journal: Journal?

  init(_ path: BytePath) { self.path = path }

  private func opened() async throws(JournalError) -> JournalJobs {
    if let journal { return journal.jobs }
    let opened = try await Journal(at: path)
    journal = opened
    return opened.jobs
  }

  func job(at url: String, account: String?) async throws(JournalError) -> JournalJob? {
    try await opened().job(at: url, account: account)
  }
  func jobs(at url: String) async throws(JournalError) -> [JournalJob] { try await opened().jobs(at: url) }
  func keep(_ job: JournalJob) async throws(JournalError) { try await opened().keep(job) }
  func open() async throws(JournalError) -> [JournalJob] { try await opened().open() }
  func refused() async throws(JournalError) -> [JournalJob] { try await opened().refused() }
  func waiting() async throws(JournalError) -> [JournalJob] { try await opened().waiting() }
  func settledVersion(of asset: String, at folder: String) async throws(JournalError) -> String? {
    try await opened().settledVersion(of: asset, at: folder)
  }
  func settle(_ asset: String, _ version: String, at folder: String) async throws(JournalError) {
    try await opened().settle(asset, version, at: folder)
  }
  func unsettle(_ asset: String) async throws(JournalError) { try await opened().unsettle(asset) }
}
