import Foundation
import Testing

/// The real binary against real servers. One test after the other: they start programs, measure memory and kill.
@Suite(.serialized) enum EndToEnd {}

/// A limit on a program's memory; none where a sanitizer (`FULLBORE_SANITIZED`) takes more of it than the program.
func most(_ bytes: Int) -> Int {
  ProcessInfo.processInfo.environment["FULLBORE_SANITIZED"] == nil ? bytes : .max
}
