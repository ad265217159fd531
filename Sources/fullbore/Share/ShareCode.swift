/// A token that a person can type: `k7mq-4w9x-p3tz`.
enum ShareCode {
  /// Without characters that look like another one.
  private static let characters = Array("23456789abcdefghjkmnpqrstuvwxyz")

  /// A new code of twelve random characters. There are 7·10¹⁷ of them, so nobody finds one by trying.
  static func make() -> String {
    var random = SystemRandomNumberGenerator()
    let group = { String((0..<4).map { _ in characters.randomElement(using: &random)! }) }
    return (0..<3).map { _ in group() }.joined(separator: "-")
  }
}
