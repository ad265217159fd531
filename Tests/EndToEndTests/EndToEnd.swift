import Foundation
import Testing

/// Tests of the real binary with real servers. They run one after another, because they start programs, measure memory
/// and kill processes.
@Suite(.serialized) enum EndToEnd {}

/// A limit for a program's memory; no limit with a sanitizer (`FULLBORE_SANITIZED`), which uses more memory than the
/// program.
func most(_ bytes: Int) -> Int {
  ProcessInfo.processInfo.environment["FULLBORE_SANITIZED"] == nil ? bytes : .max
}
