import BlobMedia
import BlobTesting
import Blobs
import Foundation

/// A small picture in a temporary file, and the helper program that was built beside these tests.
struct Photograph {
  let folder: ScratchFolder
  var original: BytePath { folder.path.appending("IMG_0001.JPG") }
  var sidecar: BytePath { folder.path.appending("IMG_0001.xmp") }

  static let program = BytePath(
    URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
      .appendingPathComponent("fullbore-media").path)

  init(_ picture: Data = Self.picture) throws {
    folder = try ScratchFolder()
    try write(picture, to: original)
    try write(Data("notes".utf8), to: sidecar)
  }

  /// The file is old enough that it is not checked twice.
  func write(_ bytes: Data, to path: BytePath, age: TimeInterval = 1000) throws {
    let url = URL(fileURLWithPath: path.description)
    try bytes.write(to: url)
    try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSinceNow: -age)], ofItemAtPath: url.path)
  }

  /// A program that identifies itself as the helper does, and then runs the shell script.
  func program(_ script: String) throws -> BytePath {
    let path = folder.path.appending("program")
    let text = "#!/bin/sh\nif [ \"$1\" = --version ]; then echo other 1; exit; fi\n\(script)\n"
    try Data(text.utf8).write(to: URL(fileURLWithPath: path.description))
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path.description)
    return path
  }

  func rendition(
    _ edit: PhotoEdit, by program: BytePath = Self.program, patience: Duration? = nil, quality: Int = 93
  ) throws -> RenditionSource {
    var renderer = try Renderer(program)
    if let patience { renderer.patience = patience }
    return RenditionSource(FileSource(original), FileSource(sidecar), edit, renderer, quality: quality)
  }

  /// 96 by 64 pixels of colored clouds, generated for this test.
  static let picture = Data(
    base64Encoded: """
      /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxO
      UlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09P
      T09PT09PT0//wAARCABAAGADASIAAhEBAxEB/8QAGgAAAwEBAQEAAAAAAAAAAAAAAwQFAgEABv/EACkQAAEEAQQBBAICAwAAAAAA
      AAEAAgMRIQQSMUFhIjJRcRORgbEFocH/xAAaAQACAwEBAAAAAAAAAAAAAAADBAECBQAG/8QAIhEAAgICAgICAwAAAAAAAAAAAQIA
      AxEhIjESQQQTFCMy/9oADAMBAAIRAxEAPwB86l5AAwhPkLxQOfKXkftPe3wlpZjn1G+UKukNM9qjnhKDdQ6M08WD2nItSyRuMGl8
      8NS4tGbR4tVV5A+ld6So1JReW5YkaDkE39JKVm520jPytNmJI7HxyiOe01nyR0qEMJoKQIpsc0EO4HFoL2F92Tj4T5cx7aLsBBka
      AMUfNqEcg7lLAfUUjL4zVnwsyyEOznza9N7rs3ZQ3vp1OqvtNOVKwALK2ZwzAHDiRSyZw5poUUGWybwcJd8hBr9YWdZmP0uBuVna
      jdkj9FANyZ6GMdpFuqtlSX/C3DN6sOJaOU2gK/zEmQjc3tc0mjRPVLznOq+P6Wg5jzzwVt5bVBwyjhznlAt+zqDZrHtd3Xwmo/8A
      IDgm6Sb2gNLsX5Sxma1wo95oqWKnqEqJPEy2NW2QE7a8rjJNrhk0c+FNhe7A6PCO4vIw7wlXQeofBI1HnHfZGPKRmsOp9nPIW45i
      G7XDP/Fx8pI9oxyroNYgmyIAhvJP7XJmhzcEA+Csu3XVY8dIEhc2yLQraSdQlLYOYlL+RmAUCLVObJTncq1qNMdpJUjU6QBpNAOx
      VJ1qyDKVWLYMR1s7BRDjdArEmr2WQe++FJ/I9p2kkfaIZgQM15VPLwO534zA5WPnW7v48paSch4cOzlKiQNFC6/2sulJd2VdmU9Q
      yVFTmWNNqKYKdQ6zwnjqAWDPeMKFpJABThdp9kgH9JZgM5EMCp9Rn8h3gk2LW/z0LyQcIDfXmj+ltgJsAUuazUv9AYQrHMJ95XpI
      6JuiCuAhwoiqTDAxwApQbCe5zfDxsRl2W0/ISOo07aJB4+FUnaALFlTpYiMEi/kcraevM8sjkNkSLqNO05A4tT5Y9pNcfCtztG6j
      z18pOeA3kBI2VnODNOq8jsyUHV7wQvbs2DXz5R5Y2ttpy76SpthQRruOBvL3Dsc67bY+UzFM4NO40k4T3kfSZ9JFWSVXWeoZK89S
      jp57okk2qMNSsBN8ZtQ9PII8HNn9J+PUHb6XH+VD156jQTGpYhgDXE0PKYbAHe1t+VM02rcB1k9nhVoNQHNoCiPKRuDARpEYjc//
      2Q==
      """, options: .ignoreUnknownCharacters)!
}

extension BlobSource {
  /// All bytes from `offset` on.
  func bytes(from offset: Int64 = 0) throws -> [UInt8] {
    let reader = try BlobSlice(self, start: offset).open(Cancellation())
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 10_000)
    while case let count = try chunk.withUnsafeMutableBytes({ try reader.read(into: $0) }), count > 0 {
      bytes += chunk.prefix(count)
    }
    return bytes
  }
}

/// Width and height, from the frame header.
func size(ofJPEG bytes: [UInt8]) -> [Int] {
  var place = 2
  while place + 9 < bytes.count, bytes[place] == 0xFF {
    if (0xC0...0xC2).contains(bytes[place + 1]) {
      return [7, 5].map { Int(bytes[place + $0]) << 8 | Int(bytes[place + $0 + 1]) }
    }
    place += 2 + Int(bytes[place + 2]) << 8 + Int(bytes[place + 3])
  }
  return []
}
