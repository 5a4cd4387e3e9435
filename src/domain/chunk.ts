/** A byte range of the stored file that ends on a record boundary: the unit of work, retry and parallelism. */
export interface ChunkRange {
  /** First byte in the stored file. */
  readonly byteStart: number;
  /** One past the last byte. */
  readonly byteEnd: number;
  /** Number of the first record among the data records of the file, from 1. */
  readonly firstRow: number;
  /** Line of the file on which the first record starts, from 1. */
  readonly firstLine: number;
  /** Records in the range, counted while receiving. */
  readonly rowCount: number;
  /** The range is a single record longer than MAX_RECORD_BYTES: it is reported, never read whole. */
  readonly oversized: boolean;
}
