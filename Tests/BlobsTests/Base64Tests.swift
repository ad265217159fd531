import Foundation
import Testing

@testable import Blobs

struct Base64Tests {
  @Test(arguments: 0...20)
  func agreesWithFoundation(_ count: Int) {
    let bytes = (0..<count).map { _ in UInt8.random(in: 0...255) }
    let text = Data(bytes).base64EncodedString()
    #expect(Base64.encode(bytes) == text, "\(bytes)")
    #expect(Base64.encode(bytes.dropFirst(0)) == text, "\(bytes)")
    #expect(Base64.encode(bytes.lazy.map { $0 }) == text, "\(bytes)")
    #expect(Base64.encode(bytes, isPadded: false) == text.filter { $0 != "=" }, "\(bytes)")
    #expect(Base64.decode(text) == bytes)
  }
}
