import type { LoadOptions, LoadType } from '../domain/load.ts';
import type { Origin } from '../domain/task.ts';
import type { Database } from '../postgres/database.ts';
import type { Beginning } from './foreign-file.ts';
import type { ReceivedFile } from './receive/received-file.ts';

export interface AcceptRequest {
  readonly environmentId: number;
  readonly type: LoadType;
  /** Name from the caller. Shown, never used as a path. */
  readonly filename: string;
  readonly received: ReceivedFile;
  readonly options: LoadOptions;
  readonly idempotencyKey: string | null;
  readonly requestId?: string;
  /** Job of the stored file that this load reads again. Default: `null`, the file was sent. */
  readonly fileOf?: string | null;
  /** Default: unknown. */
  readonly origin?: Origin;
  /** Joins the transaction, for callers whose records must agree with the ledger. */
  readonly inSameTransaction?: (db: Database, accepted: Accepted) => Promise<void>;
}

export interface Accepted {
  readonly jobId: string;
  /** False if the job existed (same idempotency key, or `if_duplicate=skip`). */
  readonly created: boolean;
}

export interface LoadRequest extends AcceptRequest {
  readonly beginning: Beginning;
  /** The load whose refused records the file has. */
  readonly mends: number | null;
}
