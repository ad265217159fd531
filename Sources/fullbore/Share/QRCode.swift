import CQREncode

/// A QR code, drawn with characters (ISO/IEC 18004).
struct QRCode {
  /// The library that makes the codes, and its version.
  static var library: String { "libqrencode \(QRcode_APIVersionString().map { String(cString: $0) } ?? "")" }

  /// Rows of modules; true: dark.
  let modules: [[Bool]]

  /// nil if the text is too long for a QR code.
  init?(_ text: String) {
    var bytes = Array(text.utf8)
    guard let code = QRcode_encodeData(Int32(bytes.count), &bytes, 0, QR_ECLEVEL_L) else { return nil }
    defer { QRcode_free(code) }
    let width = Int(code.pointee.width)
    modules = (0..<width).map { row in (0..<width).map { code.pointee.data[row * width + $0] & 1 == 1 } }
  }

  /// The light modules around the code that the standard asks for (its quiet zone).
  static let margin = 4

  /// Lines for a terminal: each character shows two modules, one above the other, in black on white, whatever the colours
  /// of the terminal are.
  var lines: [String] {
    let margin = Self.margin
    let size = modules.count + 2 * margin
    func isDark(_ row: Int, _ column: Int) -> Bool {
      let (row, column) = (row - margin, column - margin)
      return modules.indices.contains(row) && modules.indices.contains(column) && modules[row][column]
    }
    return stride(from: 0, to: size, by: 2).map { row in
      let characters = (0..<size).map { column in
        switch (isDark(row, column), row + 1 < size && isDark(row + 1, column)) {
        case (false, false): " "
        case (true, false): "\u{2580}"
        case (false, true): "\u{2584}"
        case (true, true): "\u{2588}"
        }
      }
      return "\u{1B}[30;107m\(characters.joined())\u{1B}[0m"
    }
  }
}
