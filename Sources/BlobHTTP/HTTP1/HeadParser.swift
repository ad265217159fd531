/// Makes heads of the lines of an answer, one by one, whoever reads them from the connection.
///
/// What is not HTTP/1.x is refused, and never guessed at: a line that one program skips is another one's status.
/// RFC 9112 §4, §5.
package struct HeadParser {
  /// What a line has completed.
  package enum Step {
    case nothing
    /// A head with a status of 1xx. That of 100 is nothing.
    case interim(HTTPHead)
    case final(HTTPHead)
    /// The line has no place in a head: nothing that follows can be trusted.
    case malformed
  }

  /// The final head, once it is complete.
  package private(set) var final: HTTPHead?
  /// 0: the next line must be a status line.
  private var status = 0
  private var headers = HTTPHeaders()

  package init() {}

  /// Takes one line with its line break. Lines after the final head are trailers, and are left out.
  package mutating func take(_ line: UnsafeRawBufferPointer) -> Step {
    if final != nil { return .nothing }
    let line = line.withoutLineBreak
    // Either would end a line, or a text, for other programs.
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
    // After an interim head comes another one.
    status = 0
    if head.status == 100 { return .nothing }
    if head.status < 200 && head.status != 101 { return .interim(head) }
    final = head
    return .final(head)
  }
}

/// `HTTP/1.1 200 Words`, with or without its line break. RFC 9112 §4.
package struct StatusLine {
  package let minorVersion: Int
  package let status: Int

  /// nil: it is something else.
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
  /// Without a line feed at its end, and the carriage return before that. RFC 9112 §2.2.
  fileprivate var withoutLineBreak: UnsafeRawBufferPointer {
    guard let last, last == 10 else { return self }
    let end = count >= 2 && self[count - 2] == 13 ? count - 2 : count - 1
    return UnsafeRawBufferPointer(rebasing: self[..<end])
  }
}
