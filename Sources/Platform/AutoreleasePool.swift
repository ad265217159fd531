#if canImport(ObjectiveC)
  import ObjectiveC
#endif

/// Runs `body`, and releases the temporary objects of Objective-C that it has left. A thread that the program has made has no
/// pool for them, so without this they would stay until the thread ends. There are none on Linux.
package func withAutoreleasePool<Result>(_ body: () -> Result) -> Result {
  #if canImport(ObjectiveC)
    return autoreleasepool(invoking: body)
  #else
    return body()
  #endif
}
