import BlobMedia
import Blobs

/// One of the files that the photo library keeps of an asset, as `PHAssetResource` describes it.
public struct AssetResource: Sendable, Hashable {
  /// The numbers are those of `PHAssetResourceType`.
  public enum Kind: Int, Sendable {
    /// The original photo.
    case photo = 1
    /// The original video.
    case video = 2
    /// The original audio.
    case audio = 3
    /// The RAW file beside a JPEG or HEIC, or the other way round.
    case alternatePhoto = 4
    /// The photo as it was edited.
    case editedPhoto = 5
    /// The video as it was edited.
    case editedVideo = 6
    /// How the asset was edited, in the form of the app that did it.
    case adjustments = 7
    /// The photo that an app has edited, if that is not the original.
    case adjustmentBasePhoto = 8
    /// The film of a Live Photo.
    case pairedVideo = 9
    /// The film of a Live Photo as it was edited.
    case editedPairedVideo = 10
    /// The film of a Live Photo that a further edit would start from.
    case adjustmentBasePairedVideo = 11
    /// The video that a further edit would start from.
    case adjustmentBaseVideo = 12
    /// A small stand-in whose original is not here.
    case photoProxy = 19
  }

  /// nil: a kind that this version does not know.
  public var kind: Kind?
  /// `originalFilename`: `IMG_0001.HEIC`, and for edits `FullSizeRender.heic`.
  public var filename: String
  /// How many resources of the same kind and filename come before this one among those of the asset.
  public internal(set) var ordinal = 0

  /// The total of a progress, from a size that the system tells. nil: it tells none, or one that cannot be right.
  static func expectedLength(of size: Int?) -> Int64? { size.flatMap { $0 >= 0 ? Int64($0) : nil } }

  /// Creates a resource. `kind` nil: the system reports a kind that this version does not know.
  public init(kind: Kind?, filename: String) {
    self.kind = kind
    self.filename = filename
  }
}

extension Sequence<AssetResource> {
  /// The resources of an asset, in the library's order, with their ordinals.
  func numbered() -> [AssetResource] {
    var seen: [AssetResource: Int] = [:]
    return map { resource in
      var resource = resource
      resource.ordinal = 0
      let before = seen[resource, default: 0]
      seen[resource] = before + 1
      resource.ordinal = before
      return resource
    }
  }
}

/// Which resources of an asset are uploaded, and under which names.
///
/// The names are those that a camera roll has when it is read over a cable: `IMG_E0001.HEIC` is the edit of
/// `IMG_0001.HEIC`, `IMG_0001.MOV` the film of the Live Photo, `IMG_0001.AAE` says how it was edited.
public struct AssetPlan: Sendable {
  /// A resource that is uploaded.
  public struct Item: Sendable, Hashable {
    /// The resource's place in the array that was given.
    public var index: Int
    /// The name at the destination, which no other item of the asset has.
    public var name: String
  }

  /// Which of original and edit are uploaded where both exist.
  public let edits: GalleryEdits

  /// Creates a plan that selects originals, edits or both.
  public init(_ edits: GalleryEdits = .both) { self.edits = edits }

  /// In the order in which they should be uploaded: the asset's main picture or film comes first, so that a reader at the
  /// destination never meets a companion without it. Two items never have one name. A proxy, and what only an app's undo
  /// needs, is left out; of an unknown kind everything is uploaded.
  public func items(of resources: [AssetResource]) -> [Item] {
    let original = resources.first { [.photo, .video, .audio].contains($0.kind) }
    let kinds = Set(resources.map { $0.kind })
    var taken: Set<String> = []
    return resources.enumerated().filter { isWanted($0.element, kinds) }.sorted { first, second in
      (Self.rank(first.element), first.offset) < (Self.rank(second.element), second.offset)
    }.map { index, resource in
      var name = Self.name(of: resource, original)
      // The library may give two resources of one asset the same name.
      var number = 2
      while !taken.insert(name.lowercased()).inserted {
        name = Self.numbered(Self.name(of: resource, original), number)
        number += 1
      }
      return Item(index: index, name: name)
    }
  }

  /// Whether the resources are all that the asset will have. False: there are none yet, or only a stand-in for the photo.
  func isWhole(_ resources: [AssetResource]) -> Bool {
    let kinds = resources.map(\.kind)
    return !resources.isEmpty && (!kinds.contains(.photoProxy) || kinds.contains(.photo))
  }

  /// An original is left out only where its own edit takes its place.
  private func isWanted(_ resource: AssetResource, _ kinds: Set<AssetResource.Kind?>) -> Bool {
    switch resource.kind {
    case .photo: edits != .current || !kinds.contains(.editedPhoto)
    case .video: edits != .current || !kinds.contains(.editedVideo)
    case .pairedVideo: edits != .current || !kinds.contains(.editedPairedVideo)
    case .editedPhoto, .editedVideo, .editedPairedVideo: edits != .original
    // Without the original, nothing can be made of how it was edited.
    case .adjustments: edits != .current
    case .adjustmentBasePhoto, .adjustmentBaseVideo, .adjustmentBasePairedVideo, .photoProxy: false
    case .alternatePhoto, .audio, nil: true
    }
  }

  private static func rank(_ resource: AssetResource) -> Int {
    switch resource.kind {
    case .photo, .video, .audio: 0
    case .alternatePhoto: 1
    case .editedPhoto, .editedVideo: 2
    case .pairedVideo: 3
    case .editedPairedVideo: 4
    default: 5
    }
  }

  private static func name(of resource: AssetResource, _ original: AssetResource?) -> String {
    guard let original else { return resource.filename }
    let (stem, ending) = (split(original.filename).stem, split(resource.filename).ending)
    switch resource.kind {
    case .editedPhoto, .editedVideo, .editedPairedVideo: return marked(stem) + ending
    case .pairedVideo: return stem + ending
    // PhotoKit calls it `Adjustments.plist`. A device that is read over a cable gives it this name, by which it is found.
    case .adjustments: return stem + (ending.lowercased() == ".plist" ? ".AAE" : ending)
    default: return resource.filename
    }
  }

  /// `IMG_E0001` for `IMG_0001`; `name-edited` where the name has no number to put the mark before.
  private static func marked(_ stem: String) -> String {
    let digits = stem.dropFirst(4)
    let isNumbered = stem.hasPrefix("IMG_") && !digits.isEmpty && digits.allSatisfy { $0.isASCII && $0.isNumber }
    return isNumbered ? "IMG_E" + digits : stem + "-edited"
  }

  private static func numbered(_ name: String, _ number: Int) -> String {
    let (stem, ending) = split(name)
    return "\(stem) \(number)\(ending)"
  }

  /// `ending` has its dot.
  private static func split(_ name: String) -> (stem: String, ending: String) {
    guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return (name, "") }
    return (String(name[..<dot]), String(name[dot...]))
  }
}

extension AssetPlan.Item {
  /// For protocols that carry such things; the date is the asset's.
  public func facts(among items: [AssetPlan.Item], captured: CaptureDate?) -> GalleryFacts {
    let names = Set(items.map { BytePath($0.name) })
    var facts = Gallery(.both).facts(of: GalleryName(BytePath(name))) { names.contains($0) }
    facts.captured = captured
    return facts
  }
}
