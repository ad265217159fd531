// Small pictures of the files in visible rows. One is made at a time, and few are kept.

const height = 96;
const most = 80;
// null: it cannot be decoded.
const made = new Map();
const wanted = new Map();
let isMaking = false;

// Returns whether the row has its picture now; otherwise, `then` may be called later.
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
    wanted.set(item.key, row);
    if (!isMaking) makeAll(then);
  }
  return Boolean(picture);
}

async function makeAll(then) {
  isMaking = true;
  for (let next; (next = [...wanted].pop()); ) {
    const [key, { item, isConnected }] = next;
    wanted.delete(key);
    // The row may show another file by now.
    if (!isConnected || item.key !== key || !item.file) continue;
    made.set(key, await createImageBitmap(item.file, { resizeHeight: height, resizeQuality: "low" }).catch(() => null));
    const [[oldest, picture]] = made;
    if (made.size > most) {
      picture?.close();
      made.delete(oldest);
    }
    then();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  isMaking = false;
}
