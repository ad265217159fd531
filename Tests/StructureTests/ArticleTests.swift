import Foundation
import Testing

/// The article for users of POSInputStreamLibrary, compared with the example that it shows.
struct ArticleTests {
  /// The public names of POSInputStreamLibrary 2.3.5, and of its branch 3.0.
  private static let names = """
    pos_inputStreamWithAssetURL: pos_inputStreamWithAssetURL:asynchronous: pos_inputStreamForCFNetworkWithAssetURL:
    pos_inputStreamForAFNetworkingWithAssetURL: pos_inputStreamWithAssetLocalIdentifier:temporaryFolderPath:
    pos_assetForURL:resultBlock:failureBlock: POSAssetLookupResultBlock
    POSBlobInputStream initWithDataSource: shouldNotifyCoreFoundationAboutStatusChange POSBlobInputStreamErrorDomain
    POSBlobInputStreamErrorCode POSBlobInputStreamErrorCodeDataSourceFailure
    POSBlobInputStreamDataSource openCompleted isOpenCompleted hasBytesAvailable atEnd isAtEnd error open
    propertyForKey: setProperty:forKey: read:maxLength: getBuffer:length:
    POSBlobInputStreamDataSourceOpenCompletedKeyPath POSBlobInputStreamDataSourceHasBytesAvailableKeyPath
    POSBlobInputStreamDataSourceAtEndKeyPath POSBlobInputStreamDataSourceErrorKeyPath
    POSBlobInputStreamAssetDataSource initWithAssetURL: openSynchronously shouldOpenSynchronously
    adjustedJPEGCompressionQuality adjustedImageMaximumSize openDispatchQueue sharedOpenDispatchQueue
    POSBlobInputStreamAssetDataSourceErrorDomain POSBlobInputStreamAssetDataSourceErrorCode
    POSBlobInputStreamAssetDataSourceErrorCodeOpen POSBlobInputStreamAssetDataSourceErrorCodeRead
    POSBlobInputStreamBaseAssetDataSource initWithAssetID: abstract_openAssetWithID:completionBlock:
    POSBlobInputStreamPHAssetDataSource initWithAssetID:temporaryFolderPath:
    POSAssetReader POSLength openAsset:fromOffset:completionHandler: openFromOffset:completionHandler:
    hasBytesAvailableFromOffset: prepareForNewOffset: read:fromOffset:maxLength:error:
    POSFastAssetReader POSAdjustedAssetReaderIOS7 POSAdjustedAssetReaderIOS8 POSImageReaderIOS8 JPEGCompressionQuality
    suspiciousSize completionDispatchQueue initWithAsset: initWithAsset:assetRepresentation:assetsLibrary:
    POSLocking waitWithTimeout: POSGCDLock POSDummyLock NSStreamFileCurrentOffsetKey
    """.split { $0 == " " || $0 == "\n" }

  private let article: String
  private let examples: [[String]]

  init() throws {
    article = try String(
      contentsOf: SourceFile.root.appending(
        path: "Sources/BlobStreams/BlobStreams.docc/ComingFromPOSInputStreamLibrary.md"), encoding: .utf8)
    let folder = SourceFile.root.appending(path: "Examples/ComingFromPOS")
    examples = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil).map { file in
      Self.lines(of: try String(contentsOf: file, encoding: .utf8))
    }
  }

  /// Lines without the indentation, which may differ.
  private static func lines(of text: String) -> [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { $0.trimmingCharacters(in: .whitespaces) }
  }

  @Test func everyNameOfPOSIsInATable() {
    let cells = article.split(separator: "\n").filter { $0.hasPrefix("|") }.map { $0.split(separator: "|")[0] }
    for name in Self.names {
      #expect(cells.contains { $0.contains("`\(name)`") }, "\(name) is in no table of the article")
    }
  }

  @Test func everySnippetIsInTheExample() {
    var snippets: [[String]] = []
    var snippet: [String]?
    for line in Self.lines(of: article) {
      if line == "```swift" {
        snippet = []
      } else if line == "```", let lines = snippet {
        snippets.append(lines)
        snippet = nil
      } else {
        snippet?.append(line)
      }
    }
    #expect(snippets.count >= 9)
    for lines in snippets {
      let isThere = examples.contains { example in
        example.indices.contains { example[$0...].starts(with: lines) }
      }
      #expect(isThere, "this snippet is not in Examples/ComingFromPOS: \(lines.prefix(2).joined(separator: " / "))")
    }
  }
}
