/// Says that an upload belongs to a group of files, such as the picture and the film of one photo. A Fullbore server
/// publishes all members of a group together, or none.
package struct UploadGroup: Sendable, Hashable {
  /// The request field, as in `"3f2a"; members=3; position=1`, a string with parameters (RFC 9651 §3.3.3). In the response to
  /// OPTIONS: the largest group, as in `members=16`.
  package static let field = "Fullbore-Group"
  /// The keys in the metadata of tus.
  package static let (key, membersKey, positionKey) = ("group", "group-size", "group-position")
  /// The largest number of members.
  package static let most = 16

  /// Chosen by the client, the same for all members: up to 64 letters, digits, dashes and underscores.
  package let id: String
  /// The number of members.
  package let members: Int
  /// Counted from 1. The member with the position 1 gets its name first, and is the one without which the others make no
  /// sense.
  package let position: Int

  /// nil: one of the values is not allowed.
  package init?(id: String, members: Int64, position: Int64) {
    guard 1...64 ~= id.utf8.count, id.utf8.allSatisfy(Self.isAllowed), 1...Int64(Self.most) ~= members,
      1...members ~= position
    else { return nil }
    (self.id, self.members, self.position) = (id, Int(members), Int(position))
  }

  /// The id without the number that `numbered` has added.
  package var plainID: String { String(id.prefix { $0 != "-" }) }

  /// The group of the same files under names with this number. The server may still have files of them under other names,
  /// which wait in a group of their own. nil: the id would be too long.
  package func numbered(_ number: Int) -> UploadGroup? {
    let id = number > 1 ? "\(plainID)-\(number)" : plainID
    return UploadGroup(id: id, members: Int64(members), position: Int64(position))
  }

  /// Parses a request field.
  package init?(_ field: String) {
    let parts = field.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false).map {
      Substring($0).trimmed
    }
    guard let id = parts.first, id.utf8.count > 2, id.utf8.first == UInt8(ascii: "\""),
      id.utf8.last == UInt8(ascii: "\""),
      let numbers = StructuredField.integers(parts.dropFirst().joined(separator: ",")),
      let members = numbers["members"], let position = numbers["position"]
    else { return nil }
    self.init(id: String(id.dropFirst().dropLast()), members: members, position: position)
  }

  /// The value of the request field.
  package var text: String { "\"\(id)\"; members=\(members); position=\(position)" }

  /// The value of the field in the response to OPTIONS.
  package static let offer = "members=\(most)"

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}
