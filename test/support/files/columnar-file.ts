import { parquetWriteBuffer } from 'hyparquet-writer';

/** A user in a test file. `n` is `null` if the user has no value. */
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
