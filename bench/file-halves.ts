import { createReadStream, type ReadStream } from 'node:fs';
import { open } from 'node:fs/promises';

const readSize = 256 * 1_024;
/** No line of our files is longer. */
const longestLine = 64 * 1_024;

/** A file of lines as two streams of about the same length. */
export async function halvesOf(path: string): Promise<readonly [ReadStream, ReadStream]> {
  const file = await open(path);
  try {
    const middle = Math.floor((await file.stat()).size / 2);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(longestLine), 0, longestLine, middle);
    const end = middle + buffer.subarray(0, bytesRead).indexOf('\n');
    return [
      createReadStream(path, { highWaterMark: readSize, end }),
      createReadStream(path, { highWaterMark: readSize, start: end + 1 }),
    ];
  } finally {
    await file.close();
  }
}
