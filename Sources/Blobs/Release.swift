/// The version of this package.
package enum Release {
  package static let version = "0.1.0"
}
