import { clearLine, cursorTo } from 'node:readline';
import { growing, type Pause, pollUntil, retry } from '../base/retry.ts';
import { isTransient } from '../postgres/sqlstate.ts';
import { CommandFailed } from './errors.ts';
import type { Terminal } from './terminal.ts';

export interface Followed {
  readonly environmentId: number;
  readonly jobId: string;
  readonly signal: AbortSignal;
}

/** Pauses are short at first, because many jobs are small. */
const pollMs = growing(20, 200, 1.3);
/** Maximum length of an outage of the database, for example during a restart. */
const outageMs = 60_000;

interface StateReader<T> {
  readonly read: () => Promise<T>;
  readonly show: (seen: T) => void;
  readonly whenGone?: string;
  readonly everyMs?: Pause | undefined;
}

/** Polls until the job has ended or is held, or the signal is aborted. Returns the last state. */
export async function follow<T extends { readonly endedAt: Date | null; readonly status?: string }>(
  { signal }: Pick<Followed, 'signal'>,
  { read, show, whenGone = '', everyMs = pollMs }: StateReader<T>,
): Promise<T> {
  let state: T | null = null;
  const policy = { forMs: outageMs, pauseMs: everyMs, isTransient, signal };
  const hasEnded = async (): Promise<boolean> => {
    state = await retry(policy, read);
    show(state);
    return state.endedAt !== null || state.status === 'held';
  };
  await pollUntil({ everyMs, signal }, hasEnded).catch((error: unknown) => {
    if (!isTransient(error) && error !== signal.reason) throw error;
    if (!signal.aborted) state = null;
  });
  if (state === null) throw new CommandFailed(`The database went away. ${whenGone}`.trimEnd());
  return state;
}

export interface Progress {
  /** `share` is from 0 to 1, or `null` if it is unknown. */
  show(share: number | null, text: () => string): void;
  end(): void;
}

const longestName = 28;
const lineEveryMs = 3_000;
const silent: Progress = { show: () => undefined, end: () => undefined };

/**
 * Shows a moving bar in a terminal, and in a log a line every few seconds. `quiet` shows nothing.
 */
export function createProgress(terminal: Terminal, name: string, quiet: boolean): Progress {
  if (quiet) return silent;
  return terminal.live ? movingBar(name) : lines(terminal, name);
}

const BAR_CHARS = 24;
const drawEveryMs = 100;

function movingBar(name: string): Progress {
  const { stderr } = process;
  const short = name.length > longestName ? `${name.slice(0, longestName - 1)}…` : name;
  let drawnAt = Number.NEGATIVE_INFINITY;
  const erase = () => {
    cursorTo(stderr, 0);
    clearLine(stderr, 0);
  };
  return {
    show(share, text) {
      if (performance.now() - drawnAt < drawEveryMs) return;
      drawnAt = performance.now();
      const percent = share === null ? '    ' : `${Math.floor(100 * share)}%`.padStart(4);
      const bar = '█'.repeat(Math.floor(BAR_CHARS * (share ?? 0))).padEnd(BAR_CHARS, '░');
      erase();
      // A wrapped line could not be erased.
      stderr.write(`${short} ${bar} ${percent} ${text()}`.slice(0, stderr.columns - 1));
    },
    end: () => (drawnAt === Number.NEGATIVE_INFINITY ? undefined : erase()),
  };
}

function lines(terminal: Terminal, name: string): Progress {
  let shownAt = performance.now();
  return {
    show(share, text) {
      if (performance.now() - shownAt < lineEveryMs) return;
      shownAt = performance.now();
      terminal.inform(`${name}: ${share === null ? '' : `${Math.floor(100 * share)}% · `}${text()}`);
    },
    end: () => undefined,
  };
}
