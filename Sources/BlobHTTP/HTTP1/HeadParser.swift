/// Parses the lines of a response into heads. Independent of how the lines are read from the connection.
///
/// Input that is not HTTP/1.x is refused: a line that one program skips may be a status line to another. RFC 9112 §4,
/// §5.
package struct HeadParser {
  /// The result of parsing one line.
  package enum Step {
    case nothing
    /// A head with a status of 1xx. A head with status 100 is reported as `nothing`.
    case interim(HTTPHead)
    case final(HTTPHead)
    /// The line cannot be part of a head, so nothing after it can be trusted.
    case malformed
  }

  /// The final head, once it is complete.
  package private(set) var final: HTTPHead?
  /// 0 while the next line must be a status line.
  private var status = 0
  private var headers = HTTPHeaders()

  package init() {}

  /// Parses one line, including its line break. Lines after the final head are trailers and are ignored.
  package mutating func take(_ line: UnsafeRawBufferPointer) -> Step {
    if final != nil { return .nothing }
    let line = line.withoutLineBreak
    // Other programs may take CR as the end of the line, or NUL as the end of the text.
    if line.place(of: 0) != nil || line.place(of: 13) != nil { return .malformed }
    if status == 0 { return begin(line) }
    if line.isEmpty { return complete() }
    guard let field = FieldLine(line) else { return .malformed }
    headers.add(field)
    return .nothing
  }

  private mutating func begin(_ line: UnsafeRawBufferPointer) -> Step {
    guard let line = StatusLine(line) else { return .malformed }
    status = line.status
    headers = HTTPHeaders()
    headers.reserve(8)
    return .nothing
  }

  private mutating func complete() -> Step {
    let head = HTTPHead(status: status, headers: headers)
    // Another head follows an interim head.
    status = 0
    if head.status == 100 { return .nothing }
    if head.status < 200 && head.status != 101 { return .interim(head) }
    final = head
    return .final(head)
  }
}

/// A status line such as `HTTP/1.1 200 OK`, with or without its line break. RFC 9112 §4.
package struct StatusLine {
  package let minorVersion: Int
  package let status: Int

  /// nil if `line` is not a status line.
  package init?(_ line: UnsafeRawBufferPointer) {
    guard line.begins(with: "HTTP/1."), line.count >= 12, 48...57 ~= line[7], line[8] == 32,
      49...57 ~= line[9], 48...57 ~= line[10], 48...57 ~= line[11],
      line.count == 12 || line[12] == 32 || line[12] == 13 || line[12] == 10
    else { return nil }
    minorVersion = Int(line[7]) - 48
    status = line[9...11].reduce(0) { $0 * 10 + Int($1) - 48 }
  }
}

extension UnsafeRawBufferPointer {
  /// The line without its LF and the CR before it. RFC 9112 §2.2.
  fileprivate var withoutLineBreak: UnsafeRawBufferPointer {
    guard let last, last == 10 else { return self }
    let end = count >= 2 && self[count - 2] == 13 ? count - 2 : count - 1
    return UnsafeRawBufferPointer(rebasing: self[..<end])
  }
}
