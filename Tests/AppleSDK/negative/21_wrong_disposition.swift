// expect: has no member 'rejectProtectionSpace'
import Foundation
func f(_ answer: (URLSession.ResponseDisposition) -> Void) { answer(.rejectProtectionSpace) }
