/// Writes a file's content to the disk, and as much of its metadata as reading it again needs. It blocks. Negative, with
/// `errno`: the system could not.
package func flushContent(_ descriptor: Int32) -> Int32 {
  #if os(Linux)
    return fdatasync(descriptor)
  #else
    // The headers of Apple's systems do not declare `fdatasync`.
    return fsync(descriptor)
  #endif
}

/// Removes the content of a file from the system's memory, so that the next reading comes from the disk. Pages that wait to be
/// written stay. Only Linux has such a call; elsewhere nothing happens.
package func dropCachedContent(_ descriptor: Int32) {
  #if os(Linux)
    _ = posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
  #endif
}

/// Renames a file, but fails with EEXIST if the new name exists. The names are relative to open folders. It blocks.
package func renameNew(
  _ from: Int32, _ old: UnsafePointer<CChar>, _ to: Int32, _ new: UnsafePointer<CChar>
) -> Int32 {
  #if os(Linux)
    let status = fb_rename_noreplace(from, old, to, new)
    if status == 0 || (errno != EINVAL && errno != ENOSYS) { return status }
  #else
    let status = renameatx_np(from, old, to, new, UInt32(RENAME_EXCL))
    if status == 0 || (errno != EINVAL && errno != ENOTSUP) { return status }
  #endif
  // For file systems without such a rename (NFS): creates a second link, then removes the first.
  if linkat(from, old, to, new, 0) != 0 { return -1 }
  return unlinkat(from, old, 0)
}
