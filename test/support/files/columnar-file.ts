import { parquetWriteBuffer } from 'hyparquet-writer';

/** A user of a test. `n` is `null` without a value. */
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
