// swift-tools-version:6.0
import PackageDescription

// Which platform has which product, `scripts/manifest` prints and checks. iOS needs no library but its own SQLite and zlib, so
// BlobClient, BlobTesting and the command line, which need libcurl and OpenSSL, are for Linux and macOS. On macOS, libcurl,
// SQLite and zlib are those of its SDK.

/// A system library, seen through a module map and a header shim. `apt` names Debian's package; `brew`, Homebrew's, for a
/// library that the SDK of macOS does not have.
func system(_ name: String, pkgConfig: String, apt: String, brew: String? = nil) -> Target {
  .systemLibrary(
    name: name, pkgConfig: pkgConfig, providers: [.apt([apt])] + (brew.map { [.brew([$0])] } ?? []))
}

/// TLS of both ends. On iOS the server has none, and the client is URLSession's.
let tls: Target.Dependency = .target(name: "CSSL", condition: .when(platforms: [.linux, .macOS]))

/// Digests and ciphers; CryptoKit and CommonCrypto have them on Apple's systems.
let crypto: Target.Dependency = .target(name: "CCrypto", condition: .when(platforms: [.linux]))

/// xxHash, for hash lists. Apple's systems do not have it.
let xxHash: Target.Dependency = .target(name: "CXXHash", condition: .when(platforms: [.linux]))

// Apple's privacy manifest, for every app that links one of the libraries. Elsewhere a resource is of no use, and SwiftPM
// would compile an accessor for it that needs Foundation.
let manifestFile = "PrivacyInfo.xcprivacy"
#if os(Linux)
  let (notResources, privacyManifest): ([String], [Resource]) = ([manifestFile], [])
#else
  let (notResources, privacyManifest): ([String], [Resource]) = ([], [.copy(manifestFile)])
#endif

let package = Package(
  name: "Fullbore",
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: [
    .library(name: "Blobs", targets: ["Blobs"]),
    .library(name: "BlobCrypto", targets: ["BlobCrypto"]),
    .library(name: "BlobStreams", targets: ["BlobStreams"]),
    .library(name: "BlobHTTP", targets: ["BlobHTTP"]),
    .library(name: "BlobClient", targets: ["BlobClient"]),
    .library(name: "BlobURLSession", targets: ["BlobURLSession"]),
    .library(name: "BlobMedia", targets: ["BlobMedia"]),
    .library(name: "BlobApple", targets: ["BlobApple"]),
    .library(name: "BlobUpload", targets: ["BlobUpload"]),
    .library(name: "BlobServer", targets: ["BlobServer"]),
    .library(name: "BlobTesting", targets: ["BlobTesting"]),
    .executable(name: "fullbore", targets: ["fullbore"]),
  ],
  targets: [
    system("CCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
    system("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),
    system("CQREncode", pkgConfig: "libqrencode", apt: "libqrencode-dev", brew: "qrencode"),
    system("CZlib", pkgConfig: "zlib", apt: "zlib1g-dev"),
    system("CCrypto", pkgConfig: "libcrypto", apt: "libssl-dev"),
    system("CSSL", pkgConfig: "libssl", apt: "libssl-dev", brew: "openssl@3"),
    system("CXXHash", pkgConfig: "libxxhash", apt: "libxxhash-dev"),
    // Loaded when a database is asked for, so its headers are not needed.
    .systemLibrary(name: "CPostgres", providers: [.apt(["libpq5"])]),
    .systemLibrary(name: "CLinux"),
    .systemLibrary(name: "CIntrinsics"),

    .target(name: "Platform", dependencies: [.target(name: "CLinux", condition: .when(platforms: [.linux]))]),
    .target(name: "Blobs", dependencies: ["Platform"], exclude: notResources, resources: privacyManifest),
    .target(name: "BlobCrypto", dependencies: ["Blobs", crypto, xxHash, "CIntrinsics"]),
    .target(name: "BlobStreams", dependencies: ["Blobs", "Platform"]),
    .target(name: "BlobSQLite", dependencies: ["Blobs", "BlobCrypto", "CSQLite", "Platform"]),
    .target(name: "BlobPostgres", dependencies: ["Blobs", "CPostgres", "Platform"]),
    .target(name: "BlobHTTP", dependencies: ["Blobs", "Platform"]),
    .target(name: "BlobClient", dependencies: ["Blobs", "BlobHTTP", "CCurl", tls, "Platform"]),
    .target(
      name: "BlobURLSession",
      dependencies: [
        "Blobs", "BlobStreams", "BlobHTTP", .target(name: "BlobClient", condition: .when(platforms: [.linux])),
      ]),
    .target(name: "BlobMedia", dependencies: ["Blobs", "Platform"]),
    .target(
      name: "BlobApple",
      dependencies: ["Blobs", "BlobHTTP", "BlobMedia", "BlobUpload", "BlobURLSession", "Platform"]),
    .target(name: "BlobUpload", dependencies: ["Blobs", "BlobCrypto", "BlobHTTP", "BlobSQLite", "Platform"]),
    // A module of its own, because the compiler takes seconds for the files in it.
    .target(name: "SharePage", resources: [.embedInCode("Page")]),
    .target(
      name: "BlobServer", dependencies: ["Blobs", "BlobCrypto", "BlobHTTP", "CZlib", "SharePage", tls, "Platform"]),
    // Stores what the server receives in a bucket, by the client's own S3.
    .target(
      name: "BlobServerS3",
      dependencies: ["Blobs", "BlobCrypto", "BlobHTTP", "BlobPostgres", "BlobServer", "BlobUpload"]),
    // A journal that several machines share, in PostgreSQL.
    .target(name: "BlobQueue", dependencies: ["Blobs", "BlobCrypto", "BlobPostgres", "BlobUpload"]),
    .target(
      name: "BlobTesting",
      dependencies: [
        "Blobs", "BlobCrypto", "BlobStreams", "BlobHTTP", "BlobClient", "BlobUpload", "BlobServer", "Platform",
      ]),
    .executableTarget(
      name: "fullbore",
      dependencies: [
        "Blobs", "BlobCrypto", "BlobHTTP", "BlobClient", "BlobMedia", "BlobQueue", "BlobSQLite", "BlobUpload",
        "BlobServer", "BlobServerS3", "CQREncode", "Platform",
      ]),

    .executableTarget(
      name: "UploadExample", dependencies: ["Blobs", "BlobHTTP", "BlobClient", "BlobUpload"], path: "Examples/Upload"),
    .executableTarget(
      name: "PhotoLibraryExample", dependencies: ["Blobs", "BlobCrypto", "BlobStreams"], path: "Examples/PhotoLibrary"),
    .executableTarget(name: "LostCardExample", dependencies: ["Blobs", "BlobStreams"], path: "Examples/LostCard"),
    .executableTarget(
      name: "ChecksumExample", dependencies: ["Blobs", "BlobCrypto", "BlobStreams"], path: "Examples/Checksum"),
    .executableTarget(
      name: "EventedChecksumExample", dependencies: ["Blobs", "BlobCrypto", "BlobStreams"],
      path: "Examples/EventedChecksum"),
    .executableTarget(
      name: "URLSessionUploadExample", dependencies: ["Blobs", "BlobServer", "BlobURLSession"],
      path: "Examples/URLSessionUpload"),
    .executableTarget(
      name: "CallbackUploadExample", dependencies: ["Blobs", "BlobStreams", "BlobHTTP", "BlobClient", "BlobServer"],
      path: "Examples/CallbackUpload"),
    .executableTarget(
      name: "EncryptedUploadExample", dependencies: ["Blobs", "BlobCrypto", "BlobHTTP", "BlobClient", "BlobServer"],
      path: "Examples/EncryptedUpload"),
    .executableTarget(
      name: "SplitUploadExample", dependencies: ["Blobs", "BlobHTTP", "BlobClient", "BlobServer"],
      path: "Examples/SplitUpload"),
    .executableTarget(
      name: "MultipartPostExample", dependencies: ["Blobs", "BlobHTTP", "BlobClient"], path: "Examples/MultipartPost"),
    .executableTarget(
      name: "ComingFromPOSExample",
      dependencies: ["Blobs", "BlobApple", "BlobHTTP", "BlobMedia", "BlobStreams", "BlobURLSession"],
      path: "Examples/ComingFromPOS"),
    .executableTarget(
      name: "StreamBenchmark", dependencies: ["Blobs", "BlobStreams", "BlobTesting"], path: "Benchmarks/InputStream"),
    .executableTarget(
      name: "URLSessionBenchmark", dependencies: ["Blobs", "BlobStreams", "BlobURLSession"],
      path: "Benchmarks/URLSession"),

    .executableTarget(
      name: "QueueBenchmark", dependencies: ["Blobs", "BlobQueue", "BlobUpload"], path: "Benchmarks/Queue"),

    .target(
      name: "TestSupport",
      dependencies: ["Blobs", "BlobCrypto", "BlobHTTP", "BlobUpload", "BlobTesting", "Platform"], path: "Tests/Support"),
    .testTarget(name: "StructureTests"),
    .testTarget(name: "BlobsTests", dependencies: ["Blobs", "BlobCrypto", "BlobTesting", "TestSupport", "Platform"]),
    .testTarget(
      name: "BlobStreamsTests", dependencies: ["Blobs", "BlobCrypto", "BlobStreams", "BlobTesting", "TestSupport"]),
    .testTarget(
      name: "BlobSQLiteTests", dependencies: ["Blobs", "BlobSQLite", "BlobTesting", "TestSupport", "Platform"]),
    .testTarget(
      name: "BlobAppleTests",
      dependencies: [
        "Blobs", "BlobApple", "BlobClient", "BlobHTTP", "BlobMedia", "BlobServer", "BlobTesting", "BlobUpload",
        "Platform", "TestSupport",
      ]),
    .testTarget(
      name: "BlobHTTPTests",
      dependencies: ["Blobs", "BlobHTTP", "BlobClient", "BlobTesting", "TestSupport", "CCurl", tls, "Platform"]),
    .testTarget(
      name: "BlobURLSessionTests",
      dependencies: [
        "Blobs", "BlobStreams", "BlobHTTP", "BlobClient", "BlobUpload", "BlobURLSession", "BlobTesting", "TestSupport",
      ]),
    .testTarget(
      name: "BlobUploadTests",
      dependencies: [
        "Blobs", "BlobCrypto", "BlobHTTP", "BlobClient", "BlobSQLite", "BlobUpload", "BlobServer", "BlobTesting",
        "TestSupport",
        "Platform",
      ]),
    .testTarget(
      name: "BlobServerTests",
      dependencies: [
        "Blobs", "BlobCrypto", "BlobHTTP", "BlobClient", "BlobPostgres", "BlobQueue", "BlobServer", "BlobServerS3",
        "BlobTesting", "BlobUpload", "TestSupport", "Platform",
      ]),
    .testTarget(
      name: "BlobQueueTests",
      dependencies: ["Blobs", "BlobPostgres", "BlobQueue", "BlobTesting", "BlobUpload", "TestSupport"]),
    .testTarget(
      name: "FullboreTests",
      dependencies: [
        "fullbore", "Blobs", "BlobHTTP", "BlobClient", "BlobServer", "BlobUpload", "BlobTesting", "TestSupport",
        "Platform",
      ]),
    .testTarget(
      name: "EndToEndTests",
      dependencies: [
        "Blobs", "BlobCrypto", "BlobSQLite", "BlobTesting", "TestSupport", "BlobUpload", "fullbore", "Platform",
      ]),
  ],
  swiftLanguageModes: [.v6]
)

#if os(Linux)
  // The helper that renders edits confines its decoders with Linux's seccomp.
  package.products.append(.executable(name: "fullbore-media", targets: ["fullbore-media"]))
  package.targets += [
    .systemLibrary(name: "CVips", providers: [.apt(["libvips42"])]),
    .systemLibrary(name: "CSeccomp"),
    .executableTarget(
      name: "fullbore-media", dependencies: ["Blobs", "BlobCrypto", "BlobMedia", "CSeccomp", "CVips", "Platform"]),
    .testTarget(
      name: "BlobMediaTests",
      dependencies: ["Blobs", "BlobHTTP", "BlobMedia", "BlobStreams", "BlobTesting", "fullbore-media"]),
  ]
#endif

// An asynchronous function runs where its caller runs, unless it says otherwise: what follows the answer to a request stays on
// the thread that has the answer.
for target in package.targets where [.regular, .executable, .test].contains(target.type) {
  target.swiftSettings = [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]
}
