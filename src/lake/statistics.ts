import type { ColumnMetaData, RowGroup } from 'hyparquet';
import type { ColumnStatistics } from '../postgres/stores/lake-files.ts';

/** The longest text that is a bound as it is; of a longer one only the beginning is given, as the lower bound. */
const maxBoundBytes = 64;

/** Sums up what row groups say of their first columns, which have these names. */
export function statisticsOf(
  groups: readonly RowGroup[],
  names: readonly string[],
): Record<string, ColumnStatistics> {
  const chunks = (place: number) => groups.flatMap(({ columns }) => columns[place]?.meta_data ?? []);
  return Object.fromEntries(names.map((name, place) => [name, sumUp(chunks(place))]));
}

function sumUp(chunks: readonly ColumnMetaData[]): ColumnStatistics {
  const found = chunks.flatMap(({ statistics: { min_value, max_value } = {} }) => [min_value, max_value]);
  // Numbers are compared as numbers, texts byte by byte.
  const areNumbers = found.some((value) => typeof value === 'bigint');
  const bounds = found
    .map(boundOf)
    .filter((bound) => bound !== null)
    .sort((a, b) => (areNumbers ? Number(a.readBigInt64LE() - b.readBigInt64LE()) : Buffer.compare(a, b)));
  const [least, greatest] = [bounds[0], bounds.at(-1)];
  return {
    bytes: chunks.reduce((sum, { total_compressed_size: bytes }) => sum + Number(bytes), 0),
    nulls: chunks.reduce((sum, { statistics }) => sum + Number(statistics?.null_count ?? 0), 0),
    ...(least !== undefined && { lower: least.subarray(0, wholeChars(least)).toString('base64') }),
    ...(greatest !== undefined && greatest.length <= maxBoundBytes && { upper: greatest.toString('base64') }),
  };
}

/** Returns a bound in Iceberg's encoding. */
function boundOf(value: unknown): Buffer | null {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.length);
  if (typeof value !== 'bigint') return null;
  const bound = Buffer.alloc(8);
  bound.writeBigInt64LE(value);
  return bound;
}

/** Returns how many bytes a bound takes without cutting a character. */
function wholeChars(bytes: Buffer): number {
  let end = Math.min(bytes.length, maxBoundBytes);
  while (end < bytes.length && ((bytes[end] as number) & 0xc0) === 0x80) end--;
  return end;
}
