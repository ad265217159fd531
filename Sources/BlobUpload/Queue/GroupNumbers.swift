import Blobs
import Synchronization

/// The files that belong to one photo: its picture, its RAW file, its film, its edits. Programs find them by their common
/// name, so that the number behind a taken name must be the same for all of them.
package struct FileGroup: Sendable, Hashable {
  /// The same for all files of the group, and for no other file.
  package let key: BytePath
  /// The number of this file is that of the group.
  package let isMain: Bool

  package init(_ key: BytePath, isMain: Bool) { (self.key, self.isMain) = (key, isMain) }
}

/// Sends the files of a group after its main file, so that none of them is at the destination without it, and gives them
/// the number of the main file, whose name may turn out to be taken only at the destination. Where the server publishes
/// groups, files wait only for the number.
///
/// Memory is limited: only the latest groups are remembered. Feeds give the files of a group together, its main file first;
/// what they give much later, they look up in the journal.
package final class GroupNumbers: Sendable {
  fileprivate struct Group {
    var number = 1
    /// No file waits for the main file any more.
    var hasEnded = false
  }

  fileprivate struct State {
    /// The latest groups that have a number over 1 or have ended, the oldest first in `order`, from `next` on.
    var groups: [BytePath: Group] = [:]
    var order: [BytePath] = []
    var next = 0
    var underWay: Set<BytePath> = []
    var waiting: [BytePath: [ClaimedItem]] = [:]
    /// How many wait for a main file that was not found yet.
    var unseen = 0
    var waitsForUnseen: Bool
    /// How many files of each group are on their way, and why the main file of a group was not sent. Both are forgotten with the
    /// last of the files.
    var left: [BytePath: Int] = [:]
    var failures: [BytePath: UploadError] = [:]
  }
  private let state: Mutex<State>
  private let numbering: (@Sendable (UploadItem, Int) -> UploadItem?)?
  /// More files do not wait for a main file that may not come.
  private static let mostUnseen = 4096
  /// Many more groups than the files that are under way or listed have.
  package static let mostGroups = 8192

  /// - `waitsForUnseen`: files may come before their main file, and the feed has an end.
  /// - `numbering`: returns the item under its name with this number; nil: another file has that name. nil: files do not
  ///   get other names.
  package init(waitsForUnseen: Bool, numbering: (@Sendable (UploadItem, Int) -> UploadItem?)?) {
    state = Mutex(State(waitsForUnseen: waitsForUnseen))
    self.numbering = numbering
  }

  /// The number of a group; nil: it has none, or it is 1.
  package func number(of group: FileGroup) -> Int? {
    state.withLock { $0.groups[group.key] }.flatMap { $0.number > 1 ? $0.number : nil }
  }

  /// A number that a file of the group has got. Once the main file has arrived, another file whose name is taken has its
  /// number alone, since the others are found by the name of the main file.
  package func note(_ number: Int, of group: FileGroup) {
    if number < 2 { return }
    state.withLock { state in
      let known = state.groups[group.key] ?? Group()
      if !group.isMain, known.hasEnded { return }
      state.remember(group.key, Group(number: max(number, known.number), hasEnded: known.hasEnded))
    }
  }

  /// Whether the main file of the group is under way or has ended, as far as is remembered.
  package func isKnown(_ group: FileGroup) -> Bool {
    state.withLock { $0.underWay.contains(group.key) || $0.groups[group.key]?.hasEnded == true }
  }

  /// The main file of the group arrived with this number in an earlier run, or long ago.
  package func end(_ group: FileGroup, at number: Int) {
    state.withLock { $0.remember(group.key, Group(number: number, hasEnded: true)) }
  }

  /// How many groups are remembered or on their way.
  package var count: Int { state.withLock { $0.groups.count + $0.left.count } }

  /// The item under the number of its group; nil: it has that, or cannot get it.
  func numbered(_ item: UploadItem) -> UploadItem? {
    guard let group = item.group, !group.isMain, let number = number(of: group), item.numbered?.number ?? 1 < number
    else { return nil }
    return numbering?(item, number)
  }

  /// Files get other names.
  package var isNumbering: Bool { numbering != nil }

  /// The main file of a group was not sent.
  func note(_ failure: UploadError, of item: UploadItem) {
    guard let group = item.group, group.isMain else { return }
    state.withLock { state in
      if state.left[group.key] != nil { state.failures[group.key] = failure }
    }
  }

  /// The error of a file whose main file was not sent; nil: it may be sent. Where the server publishes groups, it says itself
  /// what becomes of the file.
  func refusal(of work: ClaimedItem) -> UploadError? {
    guard let group = work.item.group, !group.isMain, work.item.target.group == nil, work.entry != nil,
      let failure = state.withLock({ $0.failures[group.key] })
    else { return nil }
    var error = UploadError(
      .giveUp, failure.side,
      "it is not sent, because the picture that it belongs to was not: \(failure.message)",
      status: failure.status)
    error.cause = failure.cause
    return error
  }

  /// Called before the files can be sent.
  func begin(_ works: [ClaimedItem]) {
    for work in works {
      guard let group = work.item.group, isOrdered(work) else { continue }
      state.withLock { $0.left[group.key, default: 0] += 1 }
      if !group.isMain { continue }
      note(work.item.numbered?.number ?? 1, of: group)
      state.withLock { state in
        state.failures[group.key] = nil
        guard state.underWay.insert(group.key).inserted else { return }
        state.unseen -= state.waiting[group.key]?.count ?? 0
      }
    }
  }

  /// Whether the files of its group have an order. Where the server publishes groups, they have one only for their numbers.
  private func isOrdered(_ work: ClaimedItem) -> Bool { isNumbering || work.item.target.group == nil }

  /// Whether the file is not to be sent now. It comes back from `end` or `takeUnseen`.
  func keepsWaiting(_ work: ClaimedItem) -> Bool {
    guard let group = work.item.group, !group.isMain, isOrdered(work) else { return false }
    // It has its name already.
    if case .done = work.claim { return false }
    return state.withLock { state in
      if state.groups[group.key]?.hasEnded == true { return false }
      if !state.underWay.contains(group.key) {
        guard state.waitsForUnseen, state.unseen < Self.mostUnseen else { return false }
        state.unseen += 1
      }
      state.waiting[group.key, default: []].append(work)
      return true
    }
  }

  /// Called after a file was sent, or was not. Returns the files that have waited for it.
  func end(_ work: ClaimedItem) -> [ClaimedItem] {
    guard let group = work.item.group, isOrdered(work) else { return [] }
    return state.withLock { state in
      state.leave(group.key)
      if !group.isMain { return [] }
      state.underWay.remove(group.key)
      // A number is wanted by files that come much later, too.
      if isNumbering {
        state.remember(group.key, Group(number: state.groups[group.key]?.number ?? 1, hasEnded: true))
      }
      return state.waiting.removeValue(forKey: group.key) ?? []
    }
  }

  /// Called when no further files come. Returns those whose main file has not come.
  func takeUnseen() -> [ClaimedItem] {
    state.withLock { state in
      let unseen = state.waiting.filter { !state.underWay.contains($0.key) }
      for (key, works) in unseen {
        state.waiting[key] = nil
        // The caller begins with them again.
        for _ in works { state.leave(key) }
      }
      (state.unseen, state.waitsForUnseen) = (0, false)
      return unseen.values.flatMap(\.self)
    }
  }

  /// Returns all files that wait; nothing more is sent.
  func drop() -> [ClaimedItem] {
    state.withLock { state in
      defer { (state.waiting, state.unseen, state.waitsForUnseen) = ([:], 0, false) }
      return state.waiting.values.flatMap(\.self)
    }
  }
}

extension GroupNumbers.State {
  /// A file of the group is not on its way any more.
  fileprivate mutating func leave(_ key: BytePath) {
    guard let count = left[key] else { return }
    left[key] = count > 1 ? count - 1 : nil
    if count == 1 { failures[key] = nil }
  }

  fileprivate mutating func remember(_ key: BytePath, _ group: GroupNumbers.Group) {
    if groups.updateValue(group, forKey: key) != nil { return }
    if order.count < GroupNumbers.mostGroups { return order.append(key) }
    // A group of which files wait or are under way is given another turn. There are fewer of these than places.
    while underWay.contains(order[next]) || waiting[order[next]] != nil, order[next] != key {
      next = (next + 1) % order.count
    }
    groups[order[next]] = nil
    order[next] = key
    next = (next + 1) % order.count
  }
}
