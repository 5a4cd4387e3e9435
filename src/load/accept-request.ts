import type { LoadOptions, LoadType } from '../domain/load.ts';
import type { Origin } from '../domain/task.ts';
import type { Database } from '../postgres/database.ts';
import type { Beginning } from './foreign-file.ts';
import type { ReceivedFile } from './receive/received-file.ts';

export interface AcceptRequest {
  readonly environmentId: number;
  readonly type: LoadType;
  /** The name that the caller gives; shown, never used as a path. */
  readonly filename: string;
  readonly received: ReceivedFile;
  readonly options: LoadOptions;
  readonly idempotencyKey: string | null;
  /** The id of the HTTP request, if it came by one. */
  readonly requestId?: string;
  /** The job whose stored file it is; by default it was sent. */
  readonly fileOf?: string | null;
  /** Who or what started it; by default that is not known. */
  readonly origin?: Origin;
  /** Part of the same transaction: for a caller whose own books must say what the ledger says. */
  readonly inSameTransaction?: (db: Database, accepted: Accepted) => Promise<void>;
}

export interface Accepted {
  readonly jobId: string;
  /** False: the job was there already (same idempotency key, or `if_duplicate=skip`). */
  readonly created: boolean;
}

export interface LoadRequest extends AcceptRequest {
  /** The beginning of the file as received. */
  readonly beginning: Beginning;
  /** The load whose refused records the file holds. */
  readonly mends: number | null;
}
