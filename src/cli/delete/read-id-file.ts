import { isUtf8 } from 'node:buffer';
import { open } from 'node:fs/promises';
import { MAX_DELETION_BYTES } from '../../domain/limits.ts';
import { UsageError } from '../exit-codes.ts';

const byteOrderMark = '\ufeff';

/** Ids, one a line, taken as they stand; empty lines are none. `-`: standard input. Throws `UsageError`. */
export async function readIdFile(path: string): Promise<string[]> {
  const bytes = await readAll(path);
  if (!isUtf8(bytes)) throw new UsageError(`${path} is not UTF-8.`);
  return bytes
    .toString('utf8')
    .replace(byteOrderMark, '')
    .split(/\r?\n/)
    .filter((line) => line !== '');
}

async function readAll(path: string): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of path === '-' ? process.stdin : await openFile(path)) {
    bytes += (piece as Buffer).length;
    if (bytes > MAX_DELETION_BYTES)
      throw new UsageError(`${path} has more than ${MAX_DELETION_BYTES} bytes.`);
    pieces.push(piece as Buffer);
  }
  return Buffer.concat(pieces);
}

async function openFile(path: string) {
  try {
    return (await open(path)).createReadStream();
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
