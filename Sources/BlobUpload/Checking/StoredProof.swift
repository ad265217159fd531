import BlobCrypto
import BlobHTTP
import Blobs

/// How a file that a server has stored compares with what was sent.
enum StoredProof: Sendable {
  /// The digests are equal. The file is at this URL.
  case equal(at: HTTPURL)
  /// The server tells another digest.
  case different(UploadError)
  /// The server tells none.
  case untold
}

/// A file whose digest is asked for.
struct ProvedFile: Sendable {
  /// The digest of the bytes that were sent; nil: it is not known.
  var digest: [UInt8]?
  var algorithm: Digest.Algorithm?
  var target: UploadTarget
  /// From the `UploadResult`.
  var location: String?
}

// A Fullbore server reads files from its disk and tells their digests, so that the bytes need not travel once more.
extension Uploader {
  /// Whether the server may tell digests of many files, as far as is known.
  var mayAskForDigests: Bool {
    destination.mayTakeQueries && destination.acquaintance.existing.queries.isTaken != false
  }

  /// Compares the digests of files with those that the server makes anew of them. One request asks for all files below
  /// the destination. If the request fails, the result of each of its files is `untold`.
  func proofs(of files: [ProvedFile]) async -> [StoredProof] {
    var proofs = files.map { _ in StoredProof.untold }
    var batches: [DigestBatch: [(index: Int, place: HTTPURL, name: String)]] = [:]
    for (index, file) in files.enumerated() {
      guard file.digest != nil, let algorithm = file.algorithm, let place = await place(of: file),
        let (folder, name) = named(place)
      else { continue }
      batches[DigestBatch(folder: folder, algorithm: algorithm), default: []].append((index, place, name))
    }
    for (batch, asked) in batches {
      let query = VersionQuery(batch.algorithm, isAnew: true, destination.acquaintance.existing.queries)
      // Reading back meets the same problem, and reports or survives it.
      let answers = try? await query.ask(
        asked.map { VersionQuery.Question(name: $0.name) }, at: batch.folder, context())
      for ((index, place, _), answer) in zip(asked, answers ?? []) {
        guard case .file(let file) = answer, let told = file.digest else { continue }
        proofs[index] =
          told.algorithm == batch.algorithm && told.bytes == files[index].digest
          ? .equal(at: place)
          : .different(
            UploadError(
              .giveUp, .file,
              "QUERY \(place): what the server has differs: the \(batch.algorithm) of its \(file.length ?? 0) bytes is not "
                + "that of what was read"))
      }
    }
    return proofs
  }

  private struct DigestBatch: Hashable {
    let folder: HTTPURL
    let algorithm: Digest.Algorithm
  }

  private func place(of file: ProvedFile) async -> HTTPURL? {
    // Reading back asks once more, and reports the error.
    try? await destination.uploadProtocol.place(of: file.target, location: file.location, context())
  }

  /// The folder that is asked for the file at `place`, and the name of the file there; nil: it cannot be asked.
  private func named(_ place: HTTPURL) -> (folder: HTTPURL, name: String)? {
    guard place.query == nil, place.isAtServer(of: destination.endpoint), !place.lastComponent.isEmpty else {
      return nil
    }
    let whole = destination.endpoint.folder
    let folder = place.path.hasPrefix(whole.path) ? whole : place.folder
    return (folder, String(place.path.dropFirst(folder.path.count)))
  }
}

extension UploadDestination {
  /// Whether the protocol is one that a Fullbore server speaks, which alone takes QUERY.
  var mayTakeQueries: Bool { ["put", "tus", "resumable"].contains(uploadProtocol.name) }
}
