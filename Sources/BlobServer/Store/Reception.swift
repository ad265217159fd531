/// The stored bytes of an upload before publication. One writer at a time, on any thread.
package protocol Reception: AnyObject, Sendable {
  var id: UploadID { get }

  /// The number of bytes that were appended, and not dropped since.
  var length: Int64 { get }

  /// The number of bytes that a new store finds once the upload is saved. Only these may be acknowledged. A store that
  /// collects bytes before it stores them has fewer of them than `length` tells, until `settle`.
  var safeLength: Int64 { get }

  /// Call before the bytes of a request are appended. `count`: how many bytes the request brings; nil: its end tells.
  func expect(_ count: Int64?)

  /// Appends bytes. After a throw (413: larger than the quota; 507: no room is left) the bytes already written stay.
  func append(_ piece: BodyPiece) throws(ServerError)

  /// Call after the last byte of a request was appended, and before its bytes are acknowledged: makes all of them safe. As
  /// long as the upload has no record, a store may put that off until `save` or `publish`.
  func settle() throws(ServerError)

  /// Call if a request has ended before `settle`: drops the bytes that are not safe. Does not block.
  func retreat()

  /// Makes all following bytes provisional: until `keep`, they are dropped when a store is next opened in the folder.
  func hold() throws(ServerError)

  /// Accepts the provisional bytes. After a throw they are still provisional.
  func keep() throws(ServerError)

  /// Deletes the provisional bytes. After a throw they still exist.
  func drop() throws(ServerError)

  /// Deletes the bytes and releases the reserved quota.
  func discard()
}
