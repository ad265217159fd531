#if canImport(Photos)
  import BlobMedia
  import Blobs
  import Photos

  @available(iOS 26.1, macOS 27.0, *)
  extension PhotoUploads {
    /// For an extension: over PhotoKit. The journal at `path` is opened by the first run.
    public init(to destination: PhotoJobDestination, journal path: BytePath, edits: GalleryEdits = .both) {
      self.init(to: destination, journal: path, edits: edits, over: PhotoKitJobs())
    }

    /// For `processJobs` of `PHBackgroundResourceUploadJobExtension`.
    public nonisolated func process() async -> PHBackgroundResourceUploadProcessingResult {
      Self.result(await run())
    }

    /// For `process` of `PHBackgroundResourceUploadExtension`, which is not asynchronous. It blocks the thread that the
    /// system calls it on until the run has ended; `terminate` ends it early.
    public nonisolated func processAndWait() -> PHBackgroundResourceUploadProcessingResult {
      let outcome = Monitor(Outcome?.none)
      // The run has begun before its task has.
      let number = beginRun()
      // Nothing else can wait for an asynchronous function here. The task ends with the run.
      Task { [self] in
        let ended = await run(as: number)
        outcome.update { $0 = ended }
      }
      return Self.result(outcome.wait { $0 })
    }

    private static func result(_ outcome: Outcome) -> PHBackgroundResourceUploadProcessingResult {
      switch outcome {
      case .completed: .completed
      case .processing: .processing
      case .failed: .failure
      }
    }
  }
#endif
