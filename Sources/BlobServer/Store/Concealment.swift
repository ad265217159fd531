import Blobs

/// A server whose files may not be read tells its clients of them only whether a name is taken: not the size, the version or
/// the time of a file, nor what is a file and what a folder.
///
/// Two things cannot be concealed. Bytes that are there already are received without an error, since a client that has lost
/// the response to its upload sends it again; so whoever has a file finds out whether it is there. And an upload whose length
/// differs is refused before its bytes come, since otherwise each file with a taken name would be sent in vain.
package struct Concealment: Sendable {
  /// false: clients may know the files, and nothing is concealed.
  let isOn: Bool

  package init(isOn: Bool) { self.isOn = isOn }

  /// `open` returns the state of the target.
  package func target(
    at path: ServedPath?, in folder: ServedPath, _ open: () throws(ServerError) -> TargetState
  ) throws(ServerError) -> TargetState {
    if !isOn { return try open() }
    do throws(ServerError) {
      var state = try open()
      state.isConcealed = true
      state.item?.concealTime()
      state.refusal = state.refusal.map {
        ServerError($0.status, "no file can be stored at \(path ?? folder)", kind: $0.kind)
      }
      return state
    } catch {
      throw error.concealed(at: path ?? folder)
    }
  }

  /// `publish` publishes an upload at `target`.
  package func publication(
    at target: ServedPath, _ publish: () throws(ServerError) -> Publication
  ) throws(ServerError) -> Publication {
    if !isOn { return try publish() }
    do throws(ServerError) {
      var publication = try publish()
      if publication.outcome == .same { publication.conceal() }
      return publication
    } catch {
      throw error.concealed(at: target)
    }
  }

  /// `remove` removes the file at `path`.
  package func removal(of path: ServedPath, _ remove: () throws(ServerError) -> Void) throws(ServerError) {
    if !isOn { return try remove() }
    do throws(ServerError) {
      try remove()
    } catch {
      // A folder, or something else that cannot be deleted, has the name.
      throw [403, 409].contains(error.status) ? ServerError(404, "no file \(path)") : error
    }
  }
}

extension ServerError {
  /// The refusal for a client that may not know what kind of file has the name.
  func concealed(at path: ServedPath) -> ServerError {
    // A symbolic link is refused with 403. 412 says that a version was asked for.
    guard [403, 409, 412].contains(status) else { return self }
    return ServerError(
      status == 412 ? 412 : 409, "the name of \(path) is taken, or that of one of its folders", kind: .nameTaken)
  }
}

extension StoredItem {
  /// RFC 9110 §13.1.4: `If-Unmodified-Since` is ignored if the resource has no modification date available. Nothing is lost
  /// by it, because no file is replaced without `If-Match`.
  fileprivate mutating func concealTime() { (modified, modifiedSeconds) = (.min, .min) }
}
