import Foundation

/// For libFuzzer; scripts/fuzz builds and runs it. Each target takes what comes from outside and must not trap, run out of
/// stack or memory, or take long. `FUZZ_TARGET` says which.
private let targets: [String: @Sendable (UnsafeRawBufferPointer) -> Void] = [
  "multipart": fuzzMultipart, "answer": fuzzAnswer, "request": fuzzRequest, "fields": fuzzFields, "urls": fuzzURLs,
  "xml": fuzzXML, "json": fuzzJSON, "journal": fuzzJournal, "settings": fuzzSettings, "pictures": fuzzPictures,
  "sidecars": fuzzSidecars,
]

private let target = targets[ProcessInfo.processInfo.environment["FUZZ_TARGET"] ?? "multipart"]!

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
  target(UnsafeRawBufferPointer(start: data, count: size))
  return 0
}

func text(_ data: some Sequence<UInt8>) -> String { String(decoding: Array(data), as: UTF8.self) }
