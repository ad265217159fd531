import Blobs

/// Facts about a file of a camera roll, for protocols that transmit metadata.
public struct GalleryFacts: Sendable, Hashable {
  /// The relation between two files of one picture.
  public enum Pairing: String, Sendable {
    /// A still picture and the film around it.
    case livePhoto = "live-photo"
    /// A RAW file and the picture that the camera made from it.
    case rawAndPicture = "raw+picture"
  }

  /// What kind of file it is.
  public var kind: GalleryName.Kind
  /// What the file and its other half are together; nil: it has none.
  public var pairing: Pairing?
  /// The other half of a pair.
  public var pair: BytePath?
  /// The original of a rendered edit.
  public var editOf: BytePath?
  /// The file that a sidecar is about.
  public var sidecarOf: BytePath?
  /// A name that all pictures of a burst have in common.
  public var burst: BytePath?
  /// When the picture was taken. Files that belong to a picture have the picture's date.
  public var captured: CaptureDate?

  /// Creates facts about a file that belongs to no other one.
  public init(kind: GalleryName.Kind, burst: BytePath? = nil) {
    self.kind = kind
    self.burst = burst
  }

  /// The facts as key and value. Values are names of files in the same folder, or a date such as `2024-01-02T03:04:05`
  /// in local time at the place of capture.
  public var metadata: [String: String] {
    var fields: [String: String] = [:]
    switch kind {
    case .photo: fields["kind"] = "photo"
    case .raw: fields["kind"] = "raw"
    case .video: fields["kind"] = "video"
    case .sidecar: fields["kind"] = "sidecar"
    case .other: break
    }
    fields["pairing"] = pairing?.rawValue
    fields["pair"] = pair?.description
    fields["edit-of"] = editOf?.description
    fields["sidecar-of"] = sidecarOf?.description
    fields["burst"] = burst?.description
    fields["captured"] = captured.map { $0.description.replacing(" ", with: "T") }
    return fields
  }
}

extension Gallery {
  /// All facts except the date. `isThere` returns whether the file's folder has a file of that name. Pairs refer to the
  /// files that are wanted: if edits replace their originals, the still of a Live Photo is the edited one.
  public func facts(of name: GalleryName, _ isThere: (BytePath) -> Bool) -> GalleryFacts {
    var facts = GalleryFacts(kind: name.kind, burst: name.burst)
    switch name.kind {
    case .photo:
      if let film = companion(of: name, GalleryName.videos, isThere) {
        (facts.pairing, facts.pair) = (.livePhoto, film)
      } else if let raw = companion(of: name, GalleryName.raws, isThere) {
        (facts.pairing, facts.pair) = (.rawAndPicture, raw)
      }
    case .raw:
      facts.pair = companion(of: name, GalleryName.photos, isThere)
      if facts.pair != nil { facts.pairing = .rawAndPicture }
    case .video:
      facts.pair = companion(of: name, GalleryName.photos, isThere)
      if facts.pair != nil { facts.pairing = .livePhoto }
    case .sidecar:
      let leader = leader(of: name, isThere)
      if leader != name.name { facts.sidecarOf = leader }
    case .other: break
    }
    if name.isRendered { facts.editOf = original(of: name, isThere) }
    return facts
  }

  /// Finds the other file of a pair. An edit is paired with another edit, or with an original if there is no such edit.
  private func companion(of name: GalleryName, _ endings: [String], _ isThere: (BytePath) -> Bool) -> BytePath? {
    var stems = [name.ownStem]
    if name.isRendered {
      stems.append(name.stem)
    } else if edits == .current {
      stems = Self.renderedStems(of: name.stem) + stems
    }
    for stem in stems {
      if let found = Gallery.first(of: endings, stem, isThere) { return found }
    }
    return nil
  }
}
