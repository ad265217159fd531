import Testing

/// Compares the sources with the structure that docs/architecture.md describes. Where a test here prevents something
/// better, change the document first, and say why.
struct StructureTests {
  /// The modules of the project that each target may import. A new target needs a line.
  static let mayImport: [String: Set<String>] = [
    "Platform": ["CLinux", "Darwin", "Glibc", "Musl", "ObjectiveC"],
    "Blobs": ["Platform"],
    "BlobCrypto": ["Blobs", "CCrypto", "CIntrinsics", "CXXHash"],
    "BlobStreams": ["Platform", "Blobs"],
    "BlobURLSession": ["BlobClient", "BlobHTTP", "BlobStreams", "Blobs"],
    "BlobSQLite": ["Platform", "BlobCrypto", "Blobs", "CSQLite"],
    "BlobPostgres": ["Platform", "Blobs", "CPostgres"],
    "BlobHTTP": ["Platform", "Blobs"],
    "BlobClient": ["Platform", "BlobHTTP", "Blobs", "CCurl", "CSSL"],
    "BlobMedia": ["Platform", "Blobs"],
    "BlobApple": ["Platform", "BlobHTTP", "BlobMedia", "BlobUpload", "BlobURLSession", "Blobs"],
    "BlobUpload": ["Platform", "BlobCrypto", "BlobHTTP", "BlobSQLite", "Blobs"],
    "SharePage": [],
    "BlobServer": ["Platform", "BlobCrypto", "BlobHTTP", "Blobs", "CSSL", "CZlib", "SharePage"],
    "BlobServerS3": ["BlobCrypto", "BlobHTTP", "BlobPostgres", "BlobServer", "BlobUpload", "Blobs"],
    "BlobQueue": ["BlobCrypto", "BlobPostgres", "BlobUpload", "Blobs"],
    "BlobTesting": [
      "Platform", "BlobClient", "BlobCrypto", "BlobHTTP", "BlobMedia", "BlobSQLite", "BlobServer", "BlobStreams",
      "BlobURLSession", "BlobUpload", "Blobs",
    ],
    "fullbore": [
      "Platform", "BlobClient", "BlobCrypto", "BlobHTTP", "BlobMedia", "BlobQueue", "BlobSQLite", "BlobServer",
      "BlobServerS3", "BlobUpload", "Blobs", "CQREncode",
    ],
    "fullbore-media": ["Platform", "BlobCrypto", "BlobMedia", "Blobs", "CSeccomp", "CVips"],
  ]
  static let system: Set<String> = ["CommonCrypto", "CryptoKit", "Synchronization", "FoundationEssentials"]
  /// The targets that may import Foundation.
  static let foundation: [String: Set<String>] = [
    "BlobStreams": ["Foundation", "CoreFoundation"],
    "BlobURLSession": ["Foundation", "FoundationNetworking"],
    "BlobApple": ["Foundation", "Photos"],
    "BlobTesting": ["Foundation", "CoreFoundation"],
  ]

  @Test func everyImportIsAllowed() throws {
    for file in try SourceFile.all() where file.isSwift {
      guard let own = Self.mayImport[file.target] else {
        Issue.record("\(file.target) is not in the table of imports (\(file.path))")
        continue
      }
      let allowed = own.union(Self.system).union(Self.foundation[file.target] ?? [])
      for (number, module) in file.imports where !allowed.contains(module) && !file.isFallback(line: number) {
        Issue.record("\(file.path):\(number + 1): \(file.target) may not import \(module)")
      }
    }
  }

  @Test func arrowsPointOneWay() {
    func reachable(from target: String) -> Set<String> {
      (Self.mayImport[target] ?? []).reduce(into: []) { $0.formUnion(reachable(from: $1).union([$1])) }
    }
    for target in Self.mayImport.keys { #expect(!reachable(from: target).contains(target)) }
  }

  @Test func cLibraryHasOneTarget() throws {
    let files = try SourceFile.all()
    for library in [
      "CCurl", "CSQLite", "CCrypto", "CSSL", "CVips", "CLinux", "Glibc", "CPostgres", "CQREncode", "CXXHash", "CZlib",
    ] {
      let targets = Set(files.filter { $0.imports.contains { $0.module == library } }.map(\.target))
      // TLS has two ends, which share no code: one asks for certificates and gathers records, the other shows its own.
      let most = library == "CSSL" ? ["BlobClient", "BlobServer"] : targets.sorted().prefix(1)
      #expect(targets.isSubset(of: most), "\(library) is imported in \(targets.sorted())")
    }
  }

  @Test func noFileIsTooLongToRead() throws {
    for file in try SourceFile.all() {
      // The last line ends with a line break.
      let count = file.lines.count - (file.lines.last == "" ? 1 : 0)
      #expect(count <= 300, "\(file.path) has \(count) lines: look for the second type inside")
    }
  }

  /// An example with more lines is no longer read as a whole.
  @Test func theExampleAppHasAtMost200Lines() throws {
    let files = try SourceFile.all(below: "Examples/GalleryBackup/App")
    let count = files.reduce(0) { $0 + $1.lines.count - ($1.lines.last == "" ? 1 : 0) }
    #expect(!files.isEmpty && count <= 200, "Examples/GalleryBackup/App has \(count) lines")
  }

  /// Values that only carry facts from one place to another: options, rows of the journal, traits of protocols, sums.
  static let records: Set = [
    "CheckTotals", "ConnectionOptions", "FileCounts", "JournalDestination", "JournalEntry", "PushOptions",
    "ServerOptions", "SocketTransport.Options", "UploadTraits",
  ]
  /// Values whose aspects are read one by one: protocols, of which each request is an aspect, lists of checks, and the options
  /// of a command.
  static let manyAspects: Set = [
    "DavPlace", "ProtocolCheck", "PushOptions", "S3Multipart", "StoreChecks", "StreamCheck", "Tus",
  ]

  @Test func noTypeHasTooMuchState() throws {
    let types = try SourceFile.all().filter(\.isSwift).flatMap(\.types)
    for type in types where type.stored > 12 && !Self.records.contains(type.name) {
      Issue.record("\(type.kind) \(type.name) has \(type.stored) stored properties: look for a second type inside")
    }
    // An exception that is no longer needed would hide the next one of its name.
    for name in Self.records {
      #expect(types.contains { $0.name == name && $0.stored > 12 }, "\(name)")
    }
  }

  /// A reader of a class wants to see all that changes its state.
  @Test func noClassIsSpreadOverManyFiles() throws {
    let files = try SourceFile.all().filter(\.isSwift)
    var (classes, places): (Set<String>, [String: Set<String>]) = ([], [:])
    for file in files {
      for type in file.declarations {
        let name = "\(file.target).\(type.name)"
        if ["class", "actor"].contains(type.kind) { classes.insert(name) }
        places[name, default: []].insert(file.path)
      }
    }
    #expect(classes.count > 100)
    for name in classes.sorted() where places[name]!.count > 3 {
      Issue.record("\(name) is spread over \(places[name]!.sorted()): look for the second type inside")
    }
  }

  /// The fourth aspect of a struct means that it is two types, as with a class.
  @Test func noTypeHasManyAspects() throws {
    var aspects: [String: [String: Set<String>]] = [:]
    for file in try SourceFile.all() where file.isSwift {
      guard let name = file.path.split(separator: "/").last?.dropLast(".swift".count) else { continue }
      let type = String(name.prefix { $0 != "+" })
      aspects[file.target, default: [:]][type, default: []].insert(file.path)
    }
    let spread = aspects.values.flatMap { $0.filter { $0.value.count > 3 } }
    for (name, paths) in spread where !Self.manyAspects.contains(name) {
      Issue.record("\(name) has \(paths.sorted()): look for the second type inside")
    }
    #expect(Self.manyAspects.subtracting(spread.map(\.key)).isEmpty)
  }

  /// Swift wraps a closure once more at each access to a generic value that is one, an optional one or a tuple with one:
  /// calling it overflows the stack in the end. In a struct of its own it stays as it is.
  @Test func noClosureIsTheValueOfALock() throws {
    for file in try SourceFile.all() where file.isSwift {
      for (number, line) in file.lines.enumerated() where !line.trimmingCharacters(in: .whitespaces).hasPrefix("//") {
        let found = line.range(of: #"\b(Mutex|Monitor)<(?!\[)[^<>{}=]*->"#, options: .regularExpression)
        #expect(found == nil, "\(file.path):\(number + 1): put the closure into a struct")
      }
    }
  }

  @Test func noPublicSignatureMentionsATypeOfC() throws {
    for file in try SourceFile.all() where file.isSwift {
      for (number, line) in file.lines.enumerated() {
        // A body on the same line is no part of the signature.
        let words = SourceFile.words(of: String(line.prefix { $0 != "{" }))
        guard words.contains("public") || words.first == "open" else { continue }
        let found = words.filter { word in
          ["OpaquePointer", "CURL", "CURLM", "CURLcode", "CURLMcode", "EVP_MD_CTX", "EVP_CIPHER_CTX", "XML_Parser"]
            .contains(word)
            || word.hasPrefix("sqlite3") || word.hasPrefix("curl_")
        }
        #expect(found.isEmpty, "\(file.path):\(number + 1): public, and names \(found)")
      }
    }
  }

  /// The compiler looks up the members of a C type once for several files. A file without an import of the module that
  /// adds members can come first, and they are then unknown in the other files. Which files are compiled together depends
  /// on the machine.
  @Test func noMemberOfACTypeIsForOtherModules() throws {
    for file in try SourceFile.all() where file.isSwift {
      var extended: String?
      for (number, line) in file.lines.enumerated() {
        let words = SourceFile.words(of: line)
        if !line.hasPrefix(" "), let place = words.firstIndex(of: "extension"), place + 1 < words.count {
          extended = words[place + 1].first?.isLowercase == true ? words[place + 1] : nil
        }
        guard let type = extended else { continue }
        if words.contains("public") || words.contains("package") {
          Issue.record("\(file.path):\(number + 1): other modules do not always find this member of \(type)")
        }
        if line.hasPrefix("}") { extended = nil }
      }
    }
  }

  @Test func storedPropertiesAreCountedHoweverTheyAreWritten() {
    let file = SourceFile(
      target: "x", path: "x.swift",
      lines: [
        "public final class A: B {", "  private(set) var a = 1, b = 2", "  let (c, d): (Int, Int)",
        "  static let e = 1",
        "  var f: Int { a + b }", "  // let g = 1", "  weak var h: A?", "  var i: Int {", "    let j = 1",
        "    return j",
        "  }", "  lazy var k = { 1 }()", "  struct C {", "    @unchecked let l: [String: Int]", "  }", "  var m = 1 {",
        "    didSet { a = 2 }", "  }", "  class func n() { let o = \"{\" }", "}", "extension A {", "  func p() {",
        "    let q = 1", "  }", "  struct E {", "    var r: Int", "  }", "}", "struct D {}",
      ])
    #expect(
      file.types.map { "\($0.kind) \($0.name) \($0.stored)" } == [
        "struct A.C 1", "class A 7", "struct A.E 1", "struct D 0",
      ])
  }

  @Test func importsAreFoundHoweverTheyAreWritten() {
    let file = SourceFile(
      target: "x", path: "x.swift",
      lines: [
        "import A", "  import B // why", "@testable import C", "public import struct D.E", "@_exported import F.G",
        "// import H", "let importance = 1", "import func Glibc.open", "#if canImport(FoundationEssentials)",
        "  import FoundationEssentials", "#else", "  import Foundation", "#endif", "import Foundation",
      ])
    let modules = file.imports.map(\.module)
    #expect(
      modules == ["A", "B", "C", "D", "F", "Glibc", "FoundationEssentials", "Foundation", "Foundation"])
    #expect(file.imports.filter { file.isFallback(line: $0.line) }.map(\.line) == [11])
  }
}
