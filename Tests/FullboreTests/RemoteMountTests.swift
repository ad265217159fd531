import Testing

@testable import fullbore

struct RemoteMountTests {
  private let mounts = """
    22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
    35 22 0:48 / /home/me/nas rw,nosuid - fuse.rclone nas: rw,user_id=0
    36 22 0:49 / /media/card rw - fuseblk /dev/sdb1 rw
    37 22 0:300 / /mnt/x rw - fuse x rw
    38
    39 22 0:50 / /mnt/y rw -
    """

  @Test(arguments: [
    (0x30, "fuse.rclone"), (0x10_002C, "fuse"), (0x31, nil), (0x32, nil), (0x33, nil), (254 << 8, nil),
  ] as [(UInt64, String?)])
  func aProgramsFileSystemIsRecognized(_ device: UInt64, _ kind: String?) {
    #expect(RemoteMount(device: device, in: mounts)?.kind == kind)
  }
}
