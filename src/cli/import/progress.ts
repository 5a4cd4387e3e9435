import type { Load } from '../../domain/load.ts';
import type { Terminal } from '../terminal.ts';
import { barProgress } from './progress-bar.ts';
import { lineProgress } from './progress-lines.ts';

/** Shows how far one file is: first received, then loaded. */
export interface Progress {
  /** `total` is null where the length is not known. */
  receiving(bytes: number, total: number | null): void;
  loading(load: Load): void;
  /** Leaves the line to whoever writes next. */
  end(): void;
}

const silent: Progress = { receiving: () => undefined, loading: () => undefined, end: () => undefined };

/** A moving bar for a person, a line every few seconds for a log, nothing if so wished. */
export function createProgress(terminal: Terminal, name: string, quiet: boolean): Progress {
  if (quiet) return silent;
  return terminal.live ? barProgress(name) : lineProgress(terminal, name);
}

/** Rows a second since the load started; null while there is nothing to divide. */
export function rowsPerSecond(load: Load, now: number): number | null {
  if (load.startedAt === null) return null;
  const seconds = ((load.endedAt?.getTime() ?? now) - load.startedAt.getTime()) / 1000;
  return seconds > 0 && load.tally.read > 0 ? Math.round(load.tally.read / seconds) : null;
}
