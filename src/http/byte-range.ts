/** The bytes [start, end). */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * What a `Range` header asks for of `bytes` bytes: one part; null: the whole, also where it asks for several parts or cannot be
 * read, which a server may ignore; `unsatisfiable`: nothing that is there.
 */
export function readByteRange(header: string | undefined, bytes: number): ByteRange | null | 'unsatisfiable' {
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header ?? '');
  const [, first = '', last = ''] = match ?? [];
  if (first === '' && last === '') return null;
  if (first === '') return lastBytes(Number(last), bytes);
  const [start, end] = [Number(first), last === '' ? bytes : Math.min(Number(last) + 1, bytes)];
  if (last !== '' && Number(last) < start) return null;
  return start < bytes ? { start, end } : 'unsatisfiable';
}

function lastBytes(count: number, bytes: number): ByteRange | 'unsatisfiable' {
  if (count === 0 || bytes === 0) return 'unsatisfiable';
  return { start: Math.max(0, bytes - count), end: bytes };
}
