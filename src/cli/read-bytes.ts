import { createReadStream } from 'node:fs';
import { MAX_OPERATOR_FILE_BYTES } from '../domain/limits.ts';
import { UsageError } from './exit-codes.ts';

/** The bytes of a file, or of standard input (`-`); of one that is too long, no more than shows that. */
export async function readBytes(name: string): Promise<Buffer> {
  const source = name === '-' ? process.stdin : createReadStream(name);
  const parts: Buffer[] = [];
  let length = 0;
  try {
    for await (const part of source as AsyncIterable<Buffer>) {
      parts.push(part);
      length += part.length;
      if (length > MAX_OPERATOR_FILE_BYTES) break;
    }
  } catch (error) {
    throw new UsageError(explain(name, error));
  }
  return Buffer.concat(parts);
}

function explain(name: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR') return `There is no file ${name}.`;
  if (code === 'EISDIR') return `${name} is a folder. Name the file.`;
  return `${name} cannot be read: ${message}`;
}
