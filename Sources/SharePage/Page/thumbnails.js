/** Small pictures of the files to be sent. Only visible rows get one, one is made at a time, and few are kept. */

const side = 96;
const most = 80;
const made = new Map();
const wanted = new Map();
let isMaking = false;

const isPicture = (file) => file.type.startsWith("image/") && file.size < 60e6 && file.type !== "image/svg+xml";

/** Draws the picture of `row.item` in the row's canvas, now or later. Returns whether it is there now. */
export function drawThumbnail(row) {
  const { item, canvas } = row;
  const picture = made.get(item.key);
  if (picture) {
    if (canvas.key !== item.key) {
      canvas.width = canvas.height = side;
      canvas.getContext("2d").drawImage(picture, 0, 0);
      canvas.key = item.key;
    }
    return true;
  }
  if (picture === undefined && item.file && isPicture(item.file)) {
    wanted.set(item.key, row);
    makeNext();
  }
  return false;
}

async function makeNext() {
  if (isMaking) return;
  isMaking = true;
  for (;;) {
    const next = [...wanted].pop();
    if (!next) break;
    const [key, row] = next;
    wanted.delete(key);
    // The row may show another file by now.
    if (row.item.key !== key || !row.isConnected || !row.item.file || made.has(key)) continue;
    made.set(key, await pictureOf(row.item.file));
    for (const [old, picture] of made) {
      if (made.size <= most) break;
      picture?.close();
      made.delete(old);
    }
    if (row.item.key === key) row.refresh();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  isMaking = false;
}

/** A square from the middle of the picture; null: the browser cannot decode it. */
async function pictureOf(file) {
  try {
    const whole = await createImageBitmap(file, { resizeHeight: side * 2, resizeQuality: "low" });
    const edge = Math.min(whole.width, whole.height);
    const picture = await createImageBitmap(
      whole, (whole.width - edge) / 2, (whole.height - edge) / 2, edge, edge,
      { resizeWidth: side, resizeHeight: side, resizeQuality: "medium" });
    whole.close();
    return picture;
  } catch {
    return null;
  }
}
