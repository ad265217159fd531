import Blobs
import Platform

/// The gallery the demo sends when none is given: pictures of several sizes, and one large film.
struct DemoGallery {
  /// Arrival paths, in the order in which they were made.
  var images: [BytePath] = []
  let video: BytePath = "Film 0001.mp4"
  /// Bytes as a reader sees them.
  var apparentSize: Int64 = 0
  /// Bytes the disk gave for them.
  var diskSize: Int64 = 0
  var videoSize: Int64 = 0
  var videoDiskSize: Int64 = 0

  /// Makes it in `folder`, which must be empty. The same seed makes the same bytes. `isStopped` is asked between files.
  init(
    in folder: BytePath, images count: Int = imageCount, videoSize: Int64, seed: UInt64 = 1,
    isStopped: () -> Bool = { false }
  ) throws(DemoError) {
    for name in ["2024", "2024/Küste", "2024/Sommer", "Portraits"] as [BytePath] {
      let path = folder.appending(name)
      if path.withCString({ mkdir($0, 0o755) }) != 0 {
        throw DemoError("make \(path): \(String(cString: strerror(errno)))")
      }
    }
    for index in 0..<count {
      if isStopped() { throw .interrupted }
      let name = Self.name(of: index)
      // 7 and 40 have no common divisor: every size comes, small and large mixed.
      let size = Self.sizes[index * 7 % Self.imageCount]
      try Self.writeImage(folder.appending(name), size, seed: seed &+ UInt64(index))
      images.append(name)
      let status = try fileStatus(folder.appending(name))
      apparentSize += Int64(status.st_size)
      diskSize += Int64(status.st_blocks) * 512
    }
    try StampedVideo.write(folder.appending(video), size: videoSize)
    let status = try fileStatus(folder.appending(video))
    self.videoSize = videoSize
    videoDiskSize = Int64(status.st_blocks) * 512
    apparentSize += videoSize
    diskSize += videoDiskSize
  }

  static let imageCount = 40

  /// About 50 MiB in all, from 52 KiB to 10 MiB.
  private static let sizes: [(width: Int, height: Int)] = [
    (12, 160, 110), (10, 320, 240), (6, 640, 427), (4, 800, 600), (3, 1024, 683), (2, 1280, 853), (1, 1600, 1067),
    (1, 2048, 1536), (1, 2000, 1740),
  ].flatMap { count, width, height in Array(repeating: (width: width, height: height), count: count) }

  /// A little more than the images take.
  static let expectedImageBytes: Int64 = sizes.reduce(0) { $0 + Int64(3 * $1.width * $1.height + 8192) }

  private static func name(of index: Int) -> BytePath {
    if index == 7 { return "2024/Küste/Möwe über dem Meer.png" }
    let digits = String(1001 + index)
    return BytePath(["", "2024/Sommer/", "Portraits/", "2024/Küste/"][index % 4] + "IMG_\(digits).png")
  }

  private static func writeImage(
    _ path: BytePath, _ size: (width: Int, height: Int), seed: UInt64
  ) throws(DemoError) {
    let png = try PNGWriter(try FileWriter(path), width: size.width, height: size.height)
    var painting = Painting(width: size.width, height: size.height, seed: seed)
    var row = [UInt8](repeating: 0, count: 3 * size.width)
    for y in 0..<size.height {
      painting.paint(y, into: &row)
      try png.write(row: row)
    }
    try png.finish()
  }
}

func fileStatus(_ path: BytePath) throws(DemoError) -> stat {
  var status = stat()
  if path.withCString({ stat($0, &status) }) != 0 { throw DemoError("\(path): \(String(cString: strerror(errno)))") }
  return status
}
