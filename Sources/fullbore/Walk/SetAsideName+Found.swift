import Blobs
import Platform

// Gives files that still have such a name their own one.
extension SetAsideName {
  /// A file that a walk has found under such a name.
  struct Found: Sendable {
    /// nil: nothing is reported.
    let event: TreeEvent?
    /// The name that the file has again; nil: it keeps this one.
    let original: BytePath?
    /// The file already had that name too, so that the walk of its folder finds it without more.
    private(set) var hadBothNames = false

    /// nil: `name` is none of these names. `folder`: an absolute path. This call blocks.
    init?(_ name: BytePath, in folder: BytePath, _ rule: Rule) {
      guard let original = SetAsideName.original(of: name) else { return nil }
      let path = folder.appending(name)
      let reason = "an interrupted push --delete-after-verify had renamed it to \(name)"
      switch rule {
      case .passOver: (event, self.original) = (nil, nil)
      case .fail:
        let reason = "an interrupted push --delete-after-verify has renamed it to \(name); push gives the name back"
        (event, self.original) = (.failed(path, message: reason), nil)
      case .giveBack:
        var status = stat()
        let isTaken = folder.appending(original).status(&status) == 0
        if Self.rename(name, to: original, in: folder) {
          event = .noticed("\(folder.appending(original)): has its name back, since \(reason)")
          self.original = original
          hadBothNames = isTaken
        } else {
          let why = errno == EEXIST ? "there is another file of that name" : String(cString: strerror(errno))
          event = .noticed(
            "\(path): is passed over. It is \(original), which an interrupted push --delete-after-verify has renamed, and cannot "
              + "get that name back: \(why)")
          self.original = nil
        }
      }
    }

    /// The event of a source that the user has named, under its own or its other name; nil: it needs none. A name that was given
    /// back is put before the other sources.
    static func atRoot(_ roots: inout [BytePath], _ root: BytePath, _ rule: Rule) -> TreeEvent? {
      let path = root.absolute()
      var (name, status) = (path.name, stat())
      if rule == .giveBack, SetAsideName.original(of: name) == nil, path.status(&status) != 0, errno == ENOENT {
        // The file may still have its other name.
        let other = SetAsideName.all(for: name).first { path.folder.appending($0).status(&status) == 0 }
        guard let other else { return nil }
        name = other
      }
      guard rule != .passOver, let found = Found(name, in: path.folder, rule) else { return nil }
      if let original = found.original { roots.append(BytePath(root.folder.bytes + original.bytes)) }
      return found.event
    }

    /// Gives the files of the folder for long names their names back, before `folder` is listed. nil: there are none.
    static func allBack(in folder: BytePath) -> TreeEvent? {
      guard let aside = OpenFolder(folder.appending(SetAsideName.folder), "", follow: false) else { return nil }
      var count = 0
      while let name = aside.nextName() {
        if rename(SetAsideName.inFolder(name), to: name, in: folder) { count += 1 }
      }
      if count == 0 { return nil }
      return .noticed(
        "\(folder): \(Quantity.plural(count, "file")) \(count == 1 ? "has its name" : "have their names") back, since an "
          + "interrupted push --delete-after-verify had moved \(count == 1 ? "it" : "them") to \(SetAsideName.folder)")
    }

    /// The event of a folder for long names that still has files; nil: nothing is reported.
    static func folder(in folder: BytePath, _ rule: Rule) -> TreeEvent? {
      let path = folder.appending(SetAsideName.folder)
      let reason = "an interrupted push --delete-after-verify has moved files to it"
      return switch rule {
      case .passOver: nil
      case .fail: .failed(path, message: "\(reason); push gives their names back")
      case .giveBack: .noticed("\(path): is passed over, since \(reason), and cannot give their names back")
      }
    }

    /// Returns false with the reason in `errno`.
    private static func rename(_ name: BytePath, to new: BytePath, in folder: BytePath) -> Bool {
      let descriptor = folder.open(O_RDONLY | O_DIRECTORY)
      if descriptor < 0 { return false }
      let status = SetAsideName.rename(name, to: new, in: descriptor)
      let number = errno
      close(descriptor)
      errno = number
      return status == 0
    }
  }
}
