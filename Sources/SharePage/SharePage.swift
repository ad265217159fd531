/// The page with which a browser sends files to the server. Its files are part of the binary.
package enum SharePage {
  /// A file of the page.
  package struct File: Sendable {
    package let bytes: [UInt8]
    /// The media type.
    package let type: String
  }

  /// Whatever a folder's path is, the page refers to its other files by a relative path that begins with this text, which
  /// stands for the path from the folder to the root.
  private static let placeholder = Array("{{base}}".utf8)
  /// The parts of the page between placeholders.
  private static let parts = pieces(of: PackageResources.page_html)

  /// The page, without any secret. `base`: the relative path from the page's URL to the root, such as `../`.
  package static func page(base: String) -> [UInt8] { Array(parts.joined(separator: base.utf8)) }

  /// The file with this name that the page refers to; nil: there is none.
  package static func file(_ name: String) -> File? { files[name] }

  private static let files = [
    "choose.js": File(bytes: PackageResources.choose_js, type: script),
    "folder.js": File(bytes: PackageResources.folder_js, type: script),
    "icon.svg": File(bytes: PackageResources.icon_svg, type: "image/svg+xml"),
    "list.js": File(bytes: PackageResources.list_js, type: script),
    "memory.js": File(bytes: PackageResources.memory_js, type: script),
    "names.js": File(bytes: PackageResources.names_js, type: script),
    "page.css": File(bytes: PackageResources.page_css, type: "text/css; charset=utf-8"),
    "page.js": File(bytes: PackageResources.page_js, type: script),
    "queue.js": File(bytes: PackageResources.queue_js, type: script),
    "rows.js": File(bytes: PackageResources.rows_js, type: script),
    "server.js": File(bytes: PackageResources.server_js, type: script),
    "text.js": File(bytes: PackageResources.text_js, type: script),
    "thumbnails.js": File(bytes: PackageResources.thumbnails_js, type: script),
    "transfer.js": File(bytes: PackageResources.transfer_js, type: script),
    "tus.js": File(bytes: PackageResources.tus_js, type: script),
  ]
  private static let script = "text/javascript; charset=utf-8"

  private static func pieces(of page: [UInt8]) -> [[UInt8]] {
    var pieces: [[UInt8]] = [[]]
    var index = 0
    while index < page.count {
      if page[index...].starts(with: placeholder) {
        pieces.append([])
        index += placeholder.count
      } else {
        pieces[pieces.count - 1].append(page[index])
        index += 1
      }
    }
    return pieces
  }
}
