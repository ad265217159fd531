// What `--help` tells beside the options.
extension PushOptions {
  static let examples: [CommandDeclaration.Example] = [
    .init("push DCIM/ http://nas:8080/2026/ --token-file token", "what is in DCIM, into 2026; run again, it goes on"),
    .init(
      "push DCIM/ dav+https://cloud.example/remote.php/dav/files/anna/ --netrc",
      "to Nextcloud, or another WebDAV server"),
    .init("push holiday.mov s3://media/2026/", "to S3; keys from the environment or ~/.aws"),
    .init("push - http://nas:8080/albums.tar", "standard input, under that name"),
    .init("push DCIM/ nas:2026/", "to the place 'nas', which 'fullbore places add' has made"),
  ]

  static let notes = """
    SOURCE is a file, a folder, either of them as file:///path, http[s]://host/path, which is sent on as it comes, or -
    for standard input, which --name or the destination gives a name.
    sqlite:FILE?table=T&column=C[&name=COLUMN][&version=COLUMN][&where=SQL][&row=N] are the BLOBs of a database; with
    &chunks=COLUMN its rows are one file, in the order of that column. Into a destination, a folder DIR arrives as
    DIR/…; DIR/ and . send their contents. Links to files are followed, links to folders are not entered; sockets,
    pipes, devices and empty folders are left out.
    Rows of a database that are NULL there are left out. A folder or table with nothing to send is a failure (a card may
    not be mounted), unless files were sent from there before; with --check it always is one. So it is when --include
    and --exclude leave nothing of all that was found.
    GLOB is a pattern of the shell's kind: * (slashes too), ?, [a-z], and \\ before a character that means itself. It is
    compared with a file's or folder's name, and with its path as it arrives. /x and ./x are only what is called x at the
    top of a source; x/ is a folder, and all below it. Files that are given are compared too, folders are not; and so are
    rows, by their names, URLs by the last part of their path, and standard input by the name that it gets.
    The fields of --layout: {year} {month} {day} {hour} {minute} {second} of when a picture was taken; {name} of the
    file, or {stem} and {ext} of that; {folder}, the folders in which it would arrive without a layout; {camera}, the model,
    or 'unknown'; {counter}, which is 1, or a higher number where another file has that path.
    --on-conflict says what becomes of a file whose name another one has: fail names it with advice; rename sends it as
    NAME-2.JPG and so on, or counts on with {counter}; skip leaves it out; overwrite replaces what is at the destination,
    and never a file of the same push. Files with the same bytes are no conflict. What failed or was left out is not there,
    so the exit status is 1. What belongs to a photo, as a Live Photo's film or a sidecar, gets the number of
    its picture, and one of its own if only its own name is taken; --dry-run counts each file by itself.
    DESTINATION is s3://bucket/folder/, gs://bucket/folder/ with --token-file, or http[s]://host/path/ with put+, tus+,
    resumable+, dav+ or form+ before it, or none: then the server is asked. With a slash at its end it means "into";
    without one, a single source arrives as exactly that name: of a folder DIR sent to …/2026, DIR/a is …/2026/a, and
    sent to …/2026/ it is …/2026/DIR/a. Forms are always posted to the URL as it is, under the file's own name.
    NAME:folder/ is that folder at a place of 'fullbore places', with its URL, its credentials and its options. What is
    given here wins over those, and any credentials given here over all of its own. The folder is written as it is called,
    without %20 and the like.
    With --also, everything goes to each destination at once. One that is away, slow or refuses stops no other one: what is
    missing there is sent when the push is run again. Credentials, certificates, --proxy, and the options of S3 and of
    forms are for the last operand only: an --also has those of its place, or of a netrc file that names its host. The other
    options are for all; --jobs is for each, and --bwlimit for all together. A file is read by each destination; a URL or
    BLOB is read once where all keep up, and again by one that falls behind, and standard input goes at the pace of the
    slowest one. The exit status is that of the worst: 130 before 3, 2 and 1.
    A file counts as done before when the journal says that a file of the same path, size, modification time, inode and
    change time was sent to this destination. It is not sent again, and the server is not asked; --check asks whether it
    still has it, and --check --verify reads it back and compares. Where only inode and change time differ, a file of a
    card or a network drive is read and compared with the checksum that was kept when it was sent; a file on a disk, of
    which none is kept, is sent again. What the server has already with the same bytes is not sent again. The query of
    DESTINATION, the fields of a form, and the name of the user that --netrc or 'Authorization: Basic' in a --header gives
    belong to the destination: with others a file is sent there too. A bearer token, which is renewed, does not.
    --delete-after-verify compares all files once more when the push is through, as 'fullbore check' does, and deletes
    here each one whose content was proved: by a digest that the destination tells, or with --verify by reading back.
    A size proves nothing, and neither does a checksum that was told with the file, as Nextcloud's: such a file stays, and
    is named. The files of a photo are deleted together or not at all; a file that has changed meanwhile stays, and so do
    folders, hidden files and all that was not sent. Each file is named NAME.fullbore-NUMBER for a moment, which shows
    whether the destination has another copy; after a kill, the next push gives the name back. A file that a program has
    open then stays, unless the destination is a Fullbore server: it may be what that shows. The exit status
    is 1 if a file stays. It is for one destination, and refused with --also. 'fullbore resume' deletes nothing.
    --mhl writes a hash list of ASC MHL 2.0 beside the files once they are there, in a folder ascmhl, and continues those
    there. A file whose hash is another one than in them makes the exit status 1. 'fullbore check --mhl' compares files
    with such lists.
    A file with credentials (--token-file, --netrc, --header @FILE) is read again where the server answers 401. With other
    ones in it, of the same user, the push goes on; so a token may be renewed while it is used: best by renaming a file.
    --seal gives files the format of age, which 'age -d' reads, and names that end in .age: their bytes are hidden from the
    server, and not their names, sizes and times. What was sealed again has other bytes, so a name that exists there is
    refused unless the journal knows the file. With other recipients a file is sent again. --seal-names hides names too:
    files and folders get opaque ones, the same in every run, and sealed indexes beside the files say what they stand for.
    The key of the names is kept beside the journal; with another journal, --identity FILE reads it from an index there.
    --journal postgres://USER@HOST/DB is a queue in a database that several machines share: the files are added to it, and
    sent by all processes that push to this destination or run 'fullbore resume' with the same --journal. The push ends when
    its files are there, whoever has sent them. A machine that does not see a file leaves it to the one that has added it.
    The password is best in PGPASSWORD or ~/.pgpass, since others can read the arguments of a program. It is for files and
    folders, and without --also, --check, --delete-after-verify, --edits, --layout, --mhl, --seal, form+ and --on-conflict
    rename and skip.
    A modification time after 2262-04-11 arrives as that date, and one before 1677-09-21 as that one.
    Sizes: 512KiB, 8M, 1.5G (K, M, G count in 1024s; kB, MB, GB in 1000s). Durations: 30s, 5m, 1h30m.
    Exit status: 0 everything is there, 1 something failed, 2 wrong usage, 3 the destination cannot be reached or
    refuses us, 130 interrupted.
    """
}
