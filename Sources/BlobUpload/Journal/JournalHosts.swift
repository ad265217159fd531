import BlobHTTP
import BlobSQLite

/// Facts about hosts, in a journal, that earlier requests have shown.
package struct JournalHosts: Sendable {
  let journal: Journal

  /// The largest request body in bytes that a host, or a proxy before it, was found to accept in the last 30 days; nil:
  /// no limit is known.
  package func largestBody(at origin: String) async throws(JournalError) -> Int64? {
    try await journal.read { store throws(SQLiteError) in try store.hosts.largestBody(at: origin) }
  }

  /// Stores the limit that an error response has shown.
  package func keepLargestBody(_ bytes: Int64, at origin: String) async throws(JournalError) {
    try await journal.read { store throws(SQLiteError) in try store.hosts.keepLargestBody(bytes, at: origin) }
  }

  /// Whether a host, or a proxy before it, was found in the last 30 days to reject PATCH and to accept POST.
  package func needsOverride(at origin: String) async throws(JournalError) -> Bool {
    try await journal.read { store throws(SQLiteError) in try store.hosts.needsOverride(at: origin) }
  }

  /// Stores the result of such a rejection, or that it no longer applies.
  package func keepOverride(_ isNeeded: Bool, at origin: String) async throws(JournalError) {
    try await journal.read { store throws(SQLiteError) in try store.hosts.keepOverride(isNeeded, at: origin) }
  }

  /// The best number of concurrent requests for a host, as found in the last 30 days; nil: not known.
  package func width(at origin: String) async throws(JournalError) -> LearnedConcurrency? {
    try await journal.read { store throws(SQLiteError) in try store.hosts.width(at: origin) }
  }

  /// Stores the number of concurrent requests that a run has found.
  package func keepWidth(_ width: LearnedConcurrency, at origin: String) async throws(JournalError) {
    try await journal.read { store throws(SQLiteError) in try store.hosts.keepWidth(width, at: origin) }
  }
}
