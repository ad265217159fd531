// swift-tools-version:6.0
import PackageDescription

let package = Package(
  name: "BlockUpload",
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: [.library(name: "BlockUpload", targets: ["BlockUpload"])],
  dependencies: [.package(name: "fullbore", path: "../..")],
  targets: [
    .target(
      name: "BlockUpload",
      dependencies: [
        .product(name: "Blobs", package: "fullbore"), .product(name: "BlobHTTP", package: "fullbore"),
        .product(name: "BlobUpload", package: "fullbore"),
      ],
      // A protocol's functions then run on the thread that has the answer, as the engine's do.
      swiftSettings: [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]),
    .testTarget(
      name: "BlockUploadTests",
      dependencies: [
        "BlockUpload", .product(name: "Blobs", package: "fullbore"), .product(name: "BlobCrypto", package: "fullbore"),
        .product(name: "BlobHTTP", package: "fullbore"),
        .product(name: "BlobUpload", package: "fullbore"), .product(name: "BlobTesting", package: "fullbore"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
