import avro from 'avsc';
import { parquetWriteBuffer } from 'hyparquet-writer';

/** A user of a test; null is no value. */
interface ColumnarUser {
  readonly user_id: string;
  readonly n: number | null;
}

export function parquetOf(users: readonly ColumnarUser[]): Buffer<ArrayBuffer> {
  return Buffer.from(
    parquetWriteBuffer({
      columnData: [
        { name: 'user_id', data: users.map(({ user_id }) => user_id), type: 'STRING' },
        { name: 'n', data: users.map(({ n }) => n), type: 'INT32' },
      ],
    }),
  );
}

/** An object container file, packed with deflate. */
export async function avroOf(users: readonly ColumnarUser[]): Promise<Buffer<ArrayBuffer>> {
  const type = {
    type: 'record',
    name: 'R',
    fields: [
      { name: 'user_id', type: 'string' },
      { name: 'n', type: ['null', 'int'] },
    ],
  };
  const encoder = new avro.streams.BlockEncoder(type as never, { codec: 'deflate' });
  for (const user of users) encoder.write(user);
  encoder.end();
  const pieces: Buffer[] = [];
  for await (const piece of encoder) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

/** By an implementation of its own. */
export async function recordsOfAvro(file: Buffer): Promise<Record<string, unknown>[]> {
  const found: Record<string, unknown>[] = [];
  const decoder = new avro.streams.BlockDecoder();
  decoder.end(file);
  for await (const row of decoder) found.push({ ...(row as object) });
  return found;
}
