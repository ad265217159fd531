import BlobHTTP
import BlobUpload
import Blobs
import Glibc

/// Gives up unfinished uploads: deletes them on their servers, then forgets them here.
struct AbortCommand: Command {
  static let declaration = CommandDeclaration(
    name: "abort", synopsis: "abort [ID... | --all]",
    summary: "delete unfinished uploads, here and on the server",
    options: [.flag("all", "every unfinished upload")] + ConnectionOptions.declared + [journalOption],
    notes: "ID is the number that 'fullbore status' shows. Files that are done stay, here and there.")

  let ids: Set<Int64>
  let isAll: Bool
  let connection: ConnectionOptions
  let journal: BytePath

  init(_ arguments: Arguments) throws(UsageError) {
    var ids: Set<Int64> = []
    for operand in arguments.operands {
      guard let id = Int64(operand.description) else {
        throw UsageError("'\(shown(operand))': wanted a number, as 'fullbore status' shows them")
      }
      ids.insert(id)
    }
    isAll = arguments.flag("all")
    if isAll != ids.isEmpty {
      throw UsageError(isAll ? "IDs and --all: which of the two?" : "which? Give IDs, or --all")
    }
    self.ids = ids
    connection = try ConnectionOptions(arguments)
    journal = try journalPath(arguments)
  }

  func run() async -> ExitStatus {
    // Giving up must not make a journal.
    if journal.withCString({ access($0, F_OK) }) != 0 {
      tell("there is no journal at \(journal)")
      return isAll ? .ok : .failed
    }
    let ended = await interruptible { await abort() }
    return ended
  }

  private func abort() async -> ExitStatus {
    do throws(UploadError) {
      let journal = try await openJournal(journal)
      var status = ExitStatus.ok
      let entries = try await unfinished(in: journal).filter { isAll || ids.contains($0.id) }
      for id in ids.subtracting(entries.map { $0.id }).sorted() {
        tell("\(id): no unfinished upload has this number; see 'fullbore status'")
        status = .failed
      }
      for (_, group) in Dictionary(grouping: entries, by: { $0.destinationID }).sorted(by: { $0.key < $1.key }) {
        let ended = await abort(group, journal)
        if ended == .interrupted { return ended }
        if status == .ok { status = ended }
      }
      await journal.close()
      return status
    } catch {
      tell(error.message)
      return ExitStatus(error.side)
    }
  }

  /// All of one destination. Those without a session on the server are only forgotten, and need no connection.
  private func abort(_ entries: [JournalEntry], _ journal: Journal) async -> ExitStatus {
    var status = ExitStatus.ok
    do throws(UploadError) {
      var server: (dialect: any UploadProtocol, context: UploadContext)?
      for entry in entries {
        if let owner = entry.owner {
          tell("\(entry.id): process \(owner.pid) is sending it; end that one first")
          status = .failed
          continue
        }
        if let session = entry.session {
          if server == nil { server = try await connect(to: entry.destination) }
          if let server { try await server.dialect.abort(session, server.context) }
        }
        try await forget(entry, in: journal)
        Console.output.write("\(entry.id)  \(shown(entry.intent.path))  given up\n")
        Console.output.flush()
      }
      return status
    } catch {
      tell(error.message)
      return ExitStatus(error.side)
    }
  }

  private func connect(
    to kept: JournalDestination
  ) async throws(UploadError) -> (any UploadProtocol, UploadContext) {
    guard let endpoint = HTTPURL(kept.endpoint) else {
      throw UploadError(.giveUp, .journal, "the journal has no usable URL: '\(kept.endpoint)'")
    }
    let connection = connection.completed(from: kept)
    let transport = CurlTransport(try connection.transportOptions(lanes: 1))
    let headers = try connection.fields(for: endpoint)
    let destination = try await UploadDestination.discover(
      endpoint, named: kept.protocolName, headers: headers, over: transport)
    return (destination.dialect, UploadContext(transport: transport, headers: headers, origin: endpoint.origin))
  }

  private func forget(_ entry: JournalEntry, in journal: Journal) async throws(UploadError) {
    do { try await journal.remove([entry.id]) } catch { throw UploadError(journal: error) }
  }

  private func tell(_ message: String) { Console.error.write("fullbore abort: \(shown(message))\n") }
}

extension ExitStatus {
  /// What an error means to the shell, by who has to act.
  fileprivate init(_ side: UploadError.Side) {
    switch side {
    case .cancelled: self = .interrupted
    case .destination: self = .unreachable
    case .source, .file, .journal: self = .failed
    }
  }
}
