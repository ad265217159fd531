import Foundation

/// A published JSON Schema of events, as far as it uses the language: one object type per event, whose members have a type
/// or fixed values.
public struct EventSchema {
  private let events: [String: [String: Any]]

  /// `command`: whose events; `push` or `check`.
  public init(of command: String = "push") throws {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("docs/\(command)-events.schema.json")
    let schema = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any]
    let types = schema?["oneOf"] as? [[String: Any]] ?? []
    events = Dictionary(uniqueKeysWithValues: types.map { ($0["title"] as? String ?? "", $0) })
  }

  /// The names of all events.
  public var names: Set<String> { Set(events.keys) }

  /// What the schema does not allow in `event`; nil: it allows everything.
  public func fault(in event: [String: Any]) -> String? {
    guard let name = event["event"] as? String, let type = events[name] else {
      return "unknown event \(event["event"] ?? "")"
    }
    return Self.fault(in: event, type)
  }

  private static func fault(in object: [String: Any], _ type: [String: Any]) -> String? {
    guard let members = type["properties"] as? [String: [String: Any]], let required = type["required"] as? [String]
    else { return "the schema has no members" }
    for name in required where object[name] == nil { return "\(name) is missing" }
    for (name, value) in object {
      guard let member = members[name] else { return "\(name) is not in the schema" }
      if !matches(value, member) { return "\(name): \(value) is not \(member)" }
    }
    return nil
  }

  private static func matches(_ value: Any, _ member: [String: Any]) -> Bool {
    if let constant = member["const"] as? String { return value as? String == constant }
    if let values = member["enum"] as? [String] { return (value as? String).map(values.contains) ?? false }
    switch member["type"] as? String {
    case "string": return value is String
    case "integer": return (value as? NSNumber).map { $0.doubleValue == $0.doubleValue.rounded() } ?? false
    case "number": return value is NSNumber
    case "boolean": return value is Bool
    case "array":
      guard let objects = value as? [[String: Any]], let type = member["items"] as? [String: Any] else { return false }
      return objects.allSatisfy { fault(in: $0, type) == nil }
    default: return false
    }
  }
}
