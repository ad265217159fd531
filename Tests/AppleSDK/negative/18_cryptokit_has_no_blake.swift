// expect: cannot find 'BLAKE2b' in scope
import CryptoKit
func f() -> any HashFunction { BLAKE2b() }
