// Small pictures of the files in visible rows. One is made at a time, and few are kept.

const height = 96;
const most = 80;
// null: it cannot be decoded.
const made = new Map();
const wanted = new Map();
let isMaking = false;

// Returns whether the row has its picture now; otherwise, `then` may be called later, while the row shows the same file.
export function drawThumbnail(row, then) {
  const { item, canvas } = row;
  const picture = made.get(item.key);
  if (picture && canvas.key !== item.key) {
    canvas.width = picture.width;
    canvas.height = picture.height;
    canvas.getContext("2d").drawImage(picture, 0, 0);
    canvas.key = item.key;
  }
  if (picture === undefined && item.file?.type.startsWith("image/") && item.size < 60e6) {
    wanted.set(item.key, { row, item, then });
    if (!isMaking) makeAll();
  }
  return Boolean(picture);
}

async function makeAll() {
  isMaking = true;
  for (let next; (next = [...wanted].pop()); ) {
    const [key, { row, item, then }] = next;
    wanted.delete(key);
    if (!row.isConnected || !item.file) continue;
    const picture = await pictureOf(item.file).catch(() => null);
    made.set(key, picture);
    const [[oldest, other]] = made;
    if (made.size > most) {
      other?.close();
      made.delete(oldest);
    }
    if (picture && row.isConnected) then();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  isMaking = false;
}

// Decoding a whole photo takes much memory, so the preview in its EXIF data is preferred.
async function pictureOf(file) {
  const decode = (source) => createImageBitmap(source, { resizeHeight: height, resizeQuality: "low" });
  try {
    return await decode(previewIn(await file.slice(0, 1 << 16).arrayBuffer()));
  } catch {
    return decode(file);
  }
}

// The preview in a JPEG that begins so, as a JPEG with the photo's orientation. Throws, or returns what cannot be decoded,
// if there is none.
function previewIn(head) {
  const view = new DataView(head);
  let base = 2;
  while (view.getUint16(base) !== 0xffe1) base += 2 + view.getUint16(base + 2);
  base += 10;
  const isLittle = view.getUint8(base) === 73;
  const short = (at) => view.getUint16(base + at, isLittle);
  const long = (at) => view.getUint32(base + at, isLittle);
  // The places of values by tag.
  const places = {};
  const read = (directory) => {
    const end = directory + 2 + 12 * short(directory);
    for (let at = directory + 2; at < end; at += 12) places[short(at)] = at + 8;
    return long(end);
  };
  const second = read(long(4));
  const orientation = places[0x112] ? short(places[0x112]) : 1;
  read(second);
  const begin = base + long(places[0x201]);
  const exif = [255, 216, 255, 225, 0, 34, 69, 120, 105, 102, 0, 0, 77, 77, 0, 42, 0, 0, 0, 8, 0, 1, 1, 18, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0];
  return new Blob([new Uint8Array(exif), head.slice(begin + 2, begin + long(places[0x202]))]);
}
