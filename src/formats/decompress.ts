import { createGunzip, createInflateRaw, type Gunzip, type InflateRaw } from 'node:zlib';
import { type InputError, inputError } from '../base/errors.ts';
import { READ_BYTES } from '../base/limits.ts';

/** Guard that is called with the size of each unpacked piece. It throws to stop the unpacking. */
export type InflateGuard = (bytes: number) => void;

export function isGzip(head: Buffer): boolean {
  return head[0] === 0x1f && head[1] === 0x8b;
}

/**
 * Unpacks one or more gzip members. Zero bytes may follow.
 * @throws InputError `unsupported_format` if data is damaged, incomplete or followed by other
 * bytes. Errors from `guard` are also thrown.
 */
export function gunzip(source: AsyncIterable<Buffer>, guard: InflateGuard): AsyncGenerator<Buffer> {
  return inflate(source, createGunzip({ chunkSize: READ_BYTES }), guard, 'The gzip data');
}

/** Unpacks a member of a ZIP archive. Throws the same errors as `gunzip`. */
export function inflateMember(
  source: AsyncIterable<Buffer>,
  guard: InflateGuard,
  name: string,
): AsyncGenerator<Buffer> {
  const what = `The member ${name} of the ZIP archive`;
  return inflate(source, createInflateRaw({ chunkSize: READ_BYTES }), guard, what);
}

async function* inflate(
  source: AsyncIterable<Buffer>,
  inflater: Gunzip | InflateRaw,
  guard: InflateGuard,
  what: string,
): AsyncGenerator<Buffer> {
  let failure: unknown = null;
  const feeding = feed(source, inflater, what).catch((error: unknown) => {
    failure = error;
    inflater.destroy(error as Error);
  });
  try {
    for await (const bytes of inflater as AsyncIterable<Buffer>) {
      guard(bytes.length);
      yield bytes;
    }
    // The compressed data may end before `source` does. `feed` then checks the remaining bytes.
    await feeding;
    if (failure !== null) throw failure;
  } catch (error) {
    throw explain(error, what);
  } finally {
    inflater.destroy();
  }
}

/** zlib stops at a zero byte after a member. Only zero bytes may follow. */
async function feed(
  source: AsyncIterable<Buffer>,
  inflater: Gunzip | InflateRaw,
  what: string,
): Promise<void> {
  let fedBytes = 0;
  for await (const bytes of source) {
    const pending = fedBytes - inflater.bytesWritten;
    if (pending === 0) await write(inflater, bytes);
    fedBytes += bytes.length;
    const unused = bytes.subarray(Math.max(0, bytes.length - (fedBytes - inflater.bytesWritten)));
    if (!unused.every((byte) => byte === 0)) throw damaged(what, 'is followed by something else');
  }
  inflater.end();
}

function write(inflater: Gunzip | InflateRaw, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    inflater.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}

function damaged(what: string, how: string): InputError {
  return inputError('unsupported_format', `${what} ${how}`);
}

function explain(error: unknown, what: string): unknown {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (code === 'Z_BUF_ERROR') return Object.assign(damaged(what, 'ends early'), { cause: error });
  if (!code.startsWith('Z_')) return error;
  return Object.assign(damaged(what, `is damaged: ${(error as Error).message}`), { cause: error });
}
