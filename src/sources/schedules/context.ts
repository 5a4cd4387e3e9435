import type { ExportContext } from '../../export/context.ts';
import type { LoadContext } from '../../load/context.ts';
import type { ReceiveLimits } from '../../load/receive/intake.ts';
import type { Variables } from './source.ts';

/** Everything the schedules work with. */
export interface ScheduleContext extends LoadContext, ExportContext {
  readonly schedules: ScheduleSettings;
}

export interface ScheduleSettings {
  /** What `${env:SCHEDULE_…}` is filled in from. */
  readonly variables: Variables;
  /** Folders that files may be loaded from; absolute. Relative patterns begin at the first. */
  readonly localRoots: readonly string[];
  /** Folders that exports may be copied to; absolute. */
  readonly exportRoots: readonly string[];
  readonly allowPrivate: boolean;
  /** PEM of authorities that https servers are trusted by; null: those that Node trusts. */
  readonly authorities: string | null;
  readonly limits: ReceiveLimits;
  readonly chunkBytes: number;
  /** A record may be committed this long after the moment that it is stored under; exports wait for as long. */
  readonly commitLagMs: number;
  /** What tells whether something is due. Leases are on the database's clock, whatever this says. */
  readonly now: () => Date;
}
