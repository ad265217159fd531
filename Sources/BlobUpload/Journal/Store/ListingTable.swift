import BlobSQLite
import Blobs

/// The table `listing`: pushes that have not read all their sources.
struct ListingTable {
  let database: Database
  let destinations: DestinationTable
  let owners: OwnerTable

  /// Must be called inside a transaction.
  func begin(
    _ sources: [BytePath], _ destination: Int64, _ me: Int64
  ) throws(SQLiteError) -> Int64 {
    // Paths contain no NUL.
    let joined = Array(sources.map(\.bytes).joined(separator: [0]))
    let place = try destinations.destination(destination)
    for old in try all()
    where old.sources == sources && old.destination.isFollowed(by: place) && old.destinationID != destination
      && old.owner == nil
    {
      try database.run("DELETE FROM listing WHERE id = ?1", with: old.id)
    }
    let upsert = try database.statement(
      """
      INSERT INTO listing(destination, owner, created, sources) VALUES(?1, ?2, ?3, ?4)
      ON CONFLICT(destination, sources) DO UPDATE SET owner = ?2, created = ?3
      """)
    try upsert.bind(1, destination)
    try upsert.bind(2, me)
    try upsert.bind(3, currentSeconds())
    try upsert.bind(4, joined)
    try upsert.run()
    let select = try database.statement("SELECT id FROM listing WHERE destination = ?1 AND sources = ?2")
    try select.bind(1, destination)
    try select.bind(2, joined)
    return try select.first { $0.int(0) } ?? 0
  }

  /// Must be called inside a transaction. A listing that another process has taken over meanwhile stays.
  func end(_ ids: [Int64], _ me: Int64) throws(SQLiteError) {
    let delete = try database.statement("DELETE FROM listing WHERE id = ?1 AND (owner IS NULL OR owner = ?2)")
    for id in ids {
      try delete.bind(1, id)
      try delete.bind(2, me)
      try delete.run()
    }
  }

  func all() throws(SQLiteError) -> [JournalListing] {
    owners.forgetLookups()
    let select = try database.statement("SELECT id, destination, sources, created, owner FROM listing ORDER BY id")
    defer { select.reset() }
    var listings: [JournalListing] = []
    while try select.step() {
      let sources = (select.blob(2) ?? []).split(separator: 0).map { BytePath($0) }
      listings.append(
        JournalListing(
          id: select.int(0), destination: try destinations.destination(select.int(1)), destinationID: select.int(1),
          sources: sources, created: select.int(3),
          owner: select.isNull(4) ? nil : try owners.live(select.int(4))))
    }
    return listings
  }
}
