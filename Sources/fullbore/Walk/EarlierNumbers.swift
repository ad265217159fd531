import BlobMedia
import BlobUpload
import Blobs
import Synchronization

/// The numbers that earlier runs of this journal have given to names, also where a run was killed before it knew that a file
/// had arrived.
///
/// A file keeps its number, and no other photo gets it. Only files with numbers need memory.
final class EarlierNumbers: Sendable {
  private struct State {
    var isRead = false
    var names: [BytePath: NumberedName] = [:]
    var uploads: [BytePath: (source: BytePath, isDone: Bool)] = [:]
  }
  private let state = Mutex(State())
  /// The photos that have a number, by their names at the destination without what tells their files apart.
  private let stems = ClaimedNames()

  /// Reads the journal at the first call. If it cannot be read, the next claim ends the run.
  func read(_ run: PushRun) async {
    if state.withLock({ $0.isRead }) { return }
    let uploads = (try? await run.journal.numbers.numbered(at: run.destinationID)) ?? []
    for upload in uploads {
      guard let photo = PhotoGroups.photo(of: upload.source) else { continue }
      let stem = UploadItem.stem(
        of: upload.name.path, source: upload.source, isSealed: run.destination.sealing != nil)
      _ = stems.take(stem, for: photo)
    }
    state.withLock { state in
      state.isRead = true
      for upload in uploads {
        state.names[upload.source] = upload.name
        state.uploads[upload.name.path] = (upload.source, upload.isDone)
      }
    }
  }

  /// The number that the file has got under its present name; nil: none over 1.
  func number(of item: UploadItem) -> Int? {
    guard let known = state.withLock({ $0.names[item.identity] }) else { return nil }
    let name = item.numbered ?? NumberedName(item.target.plainPath)
    return known.template == name.template ? known.number : nil
  }

  /// Whether no other file has the name of an item, and no other photo its number. Also true where another file has arrived
  /// under that very name: the receiver says whether it has the same bytes.
  func isFree(for item: UploadItem) -> Bool {
    if let other = state.withLock({ $0.uploads[item.target.plainPath] }), other.source != item.identity {
      return other.isDone
    }
    return item.group.map { stems.isFree(item.stem, for: $0.key) } ?? true
  }
}
