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
      // Nonisolated async functions then run on their caller's executor, as they do in the upload engine.
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
