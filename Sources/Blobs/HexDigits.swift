/// Returns two hexadecimal digits for each byte, in lower case unless `uppercase` is set.
package func hexDigits(_ bytes: [UInt8], uppercase: Bool = false) -> String {
  let ten = UInt8(ascii: uppercase ? "A" : "a") - 10
  func digit(_ value: UInt8) -> UInt8 { value + (value < 10 ? UInt8(ascii: "0") : ten) }
  return String(unsafeUninitializedCapacity: 2 * bytes.count) { text in
    for (place, byte) in bytes.enumerated() {
      text[2 * place] = digit(byte >> 4)
      text[2 * place + 1] = digit(byte & 15)
    }
    return 2 * bytes.count
  }
}
