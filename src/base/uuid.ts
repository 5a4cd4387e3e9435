import { randomFillSync } from 'node:crypto';

const random = Buffer.alloc(4_096);
const RANDOM_BYTES = 8;
const MOST_IN_A_MS = 0xfff;
let used = random.length;
let ms = 0;
let count = 0;

/**
 * Returns an id that is greater than all earlier ids. An id consists of the time, a counter within
 * the millisecond, and random bits.
 */
export function uuidv7(): string {
  // Random bits for many ids are fetched together. One system call per id would take longer than
  // everything else.
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  const now = Date.now();
  if (now > ms) {
    ms = now;
    count = 0;
  } else if (count === MOST_IN_A_MS) {
    ms++;
    count = 0;
  } else count++;
  const time = ms.toString(16).padStart(12, '0');
  const variant = '89ab'.charAt(random.readUInt8(used) >>> 6);
  const tail = random.toString('hex', used, used + RANDOM_BYTES);
  used += RANDOM_BYTES;
  const version = `7${count.toString(16).padStart(3, '0')}`;
  return `${time.slice(0, 8)}-${time.slice(8)}-${version}-${variant}${tail.slice(1, 4)}-${tail.slice(4)}`;
}
