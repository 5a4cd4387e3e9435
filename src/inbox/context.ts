import type { Config } from '../config.ts';
import type { LoadContext } from '../load/context.ts';
import type { ConnectionMonitor } from '../postgres/connection-monitor.ts';

/** What the inbox works with. A `System` is one. */
export interface InboxContext extends LoadContext {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly monitor: ConnectionMonitor;
}

/** The directory that is watched, as it was found. */
export interface Inbox {
  /** Absolute, without symbolic links. */
  readonly path: string;
  /** Stands in a file of the directory: the same on whichever machine it is seen. */
  readonly id: string;
}

/** A folder that files are dropped into, seen to be a real one. */
export interface DropFolder {
  readonly path: string;
  readonly device: bigint;
}
